/* `quic FOLDER CERTIFICATE KEY`: a server and a client of QUIC in one process, and streams both ways between them. The
 * configuration is that of the environment. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/quic.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { LEN = 1 << 20 };

static const unsigned char PROTOCOL[] = "\4test";
static unsigned char sent[LEN], got[LEN], echoed[LEN];

static void require(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "not so: %s\n", what);
        ERR_print_errors_fp(stderr);
        exit(1);
    }
}

static int only_protocol(SSL *connection, const unsigned char **chosen, unsigned char *len,
    const unsigned char *offered, unsigned int offered_len, void *unused)
{
    (void)connection;
    (void)unused;
    return SSL_select_next_proto((unsigned char **)chosen, len, PROTOCOL, sizeof PROTOCOL - 1, offered,
               offered_len) == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

static void read_all(SSL *stream, unsigned char *to)
{
    size_t done = 0, part;
    while (done < LEN) {
        require(SSL_read_ex(stream, to + done, LEN - done, &part) == 1, "read");
        done += part;
    }
}

/* Takes a stream, and sends back what came. */
static void *serve(void *listener)
{
    SSL *connection = SSL_accept_connection(listener, 0);
    require(connection != NULL, "a connection comes");
    size_t written;
    read_all(connection, got);
    require(SSL_write_ex(connection, got, LEN, &written) == 1 && written == LEN, "the server writes");
    require(SSL_stream_conclude(connection, 0) == 1, "the server ends its stream");
    while (SSL_shutdown(connection) == 0)
        ;
    SSL_free(connection);
    return NULL;
}

int main(int count, char **arguments)
{
    require(count == 4, "three arguments");
    for (int i = 0; i < LEN; i++)
        sent[i] = i % 251;

    int sockets[2] = { socket(AF_INET, SOCK_DGRAM, 0), socket(AF_INET, SOCK_DGRAM, 0) };
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    require(bind(sockets[0], (struct sockaddr *)&address, len) == 0, "a socket is bound");
    require(getsockname(sockets[0], (struct sockaddr *)&address, &len) == 0, "it has a port");

    SSL_CTX *context = SSL_CTX_new(OSSL_QUIC_server_method());
    require(context != NULL, "a server");
    require(SSL_CTX_use_certificate_chain_file(context, arguments[2]) == 1, "a certificate");
    require(SSL_CTX_use_PrivateKey_file(context, arguments[3], SSL_FILETYPE_PEM) == 1, "a key");
    SSL_CTX_set_alpn_select_cb(context, only_protocol, NULL);
    SSL *listener = SSL_new_listener(context, 0);
    require(listener != NULL && SSL_set_fd(listener, sockets[0]) == 1 && SSL_listen(listener) == 1, "it listens");
    pthread_t server;
    require(pthread_create(&server, NULL, serve, listener) == 0, "a thread");

    SSL_CTX *client = SSL_CTX_new(OSSL_QUIC_client_method());
    require(client != NULL, "a client");
    SSL *connection = SSL_new(client);
    BIO_ADDR *peer = BIO_ADDR_new();
    require(BIO_ADDR_rawmake(peer, AF_INET, &address.sin_addr, sizeof address.sin_addr, address.sin_port) == 1, "its peer");
    require(SSL_set_fd(connection, sockets[1]) == 1, "its socket");
    require(SSL_set1_initial_peer_addr(connection, peer) == 1, "its peer is taken");
    require(SSL_set_alpn_protos(connection, PROTOCOL, sizeof PROTOCOL - 1) == 0, "its protocol");
    require(SSL_connect(connection) == 1, "it connects");
    size_t written;
    require(SSL_write_ex(connection, sent, LEN, &written) == 1 && written == LEN, "the client writes");
    require(SSL_stream_conclude(connection, 0) == 1, "the client ends its stream");
    read_all(connection, echoed);
    require(memcmp(sent, got, LEN) == 0 && memcmp(sent, echoed, LEN) == 0, "the bytes are the same");
    while (SSL_shutdown(connection) == 0)
        ;
    require(pthread_join(server, NULL) == 0, "the server ends");
    printf("%s: as it should be\n", SSL_get_cipher(connection));
    SSL_free(connection);
    SSL_free(listener);
    BIO_ADDR_free(peer);
    SSL_CTX_free(client);
    SSL_CTX_free(context);
    return 0;
}
