/* `ending PROVIDER [cleanup]`: a program that frees its SSL_CTX and its cipher contexts after OPENSSL_cleanup, as
 * a library does whose destructor frees what it holds. PROVIDER is the one that OPENSSL_CONF prefers; with `cleanup`,
 * the program itself calls OPENSSL_cleanup. Exits with 0 if all is as it should be. */
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <openssl/ssl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static SSL_CTX *tls;
static EVP_CIPHER_CTX *sealing, *opening;

static void require(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "not so: %s\n", what);
        ERR_print_errors_fp(stderr);
        /* exit() may not be called while the program ends. */
        _exit(1);
    }
}

static EVP_CIPHER_CTX *keyed(const char *name, const char *provider, int encrypt)
{
    static const unsigned char key[32] = { 1 }, iv[16] = { 2 };
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(NULL, name, NULL);
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    require(cipher != NULL && context != NULL, name);
    const char *by = OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(cipher));
    require(strcmp(by, provider) == 0, by);
    require(EVP_CipherInit_ex2(context, cipher, key, iv, encrypt, NULL) == 1, "a key");
    EVP_CIPHER_free(cipher);
    return context;
}

static void works(EVP_CIPHER_CTX *context)
{
    unsigned char bytes[100] = { 3 };
    int written = -1;
    require(EVP_CipherUpdate(context, bytes, &written, bytes, sizeof bytes) == 1, "an update");
    require(written == sizeof bytes, "as many bytes");
}

/* Runs after the handlers of atexit, and so after OPENSSL_cleanup of the versions that clean up at exit. */
__attribute__((destructor)) static void at_the_end(void)
{
    if (tls == NULL)
        return;
    works(sealing);
    works(opening);
    EVP_CIPHER_CTX_free(sealing);
    SSL_CTX_free(tls);
    EVP_CIPHER_CTX_free(opening);
    puts("as it should be");
    require(fflush(stdout) == 0, "written");
}

int main(int count, char **arguments)
{
    require(count >= 2, "a provider is named");
    sealing = keyed("AES-256-GCM", arguments[1], 1);
    opening = keyed("AES-256-CTR", arguments[1], 0);
    works(sealing);
    works(opening);
    tls = SSL_CTX_new(TLS_server_method());
    require(tls != NULL, "an SSL_CTX");
    if (count > 2 && strcmp(arguments[2], "cleanup") == 0)
        OPENSSL_cleanup();
    return 0;
}
