/* `steady FOLDER [RECORDS]`: seals and opens records of 1 KiB as libssl does, one by one, and says for
 * each suite how often anything asked for memory meanwhile, and the CPU time of a record. FOLDER holds
 * wattlock.so and openssl.cnf. */
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { AAD = 13, PAYLOAD = 1024, TLS_1_2 = 0x0303 };

/* glibc's own, behind those that count. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

static unsigned long asked;

void *malloc(size_t len)
{
    asked++;
    return __libc_malloc(len);
}

void *calloc(size_t count, size_t len)
{
    asked++;
    return __libc_calloc(count, len);
}

void *realloc(void *bytes, size_t len)
{
    asked++;
    return __libc_realloc(bytes, len);
}

static void require(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "not so: %s\n", what);
        exit(1);
    }
}

static OSSL_LIB_CTX *library;

static EVP_CIPHER_CTX *keyed(const char *name, int mac_len, int encrypt)
{
    static unsigned char key[32] = { 1 }, mac_key[64] = { 2 }, iv[16] = { 3 };
    unsigned version = TLS_1_2;
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(library, name, "provider=wattlock");
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    require(cipher != NULL && context != NULL, name);
    require(EVP_CipherInit_ex2(context, cipher, key, mac_len ? iv : NULL, encrypt, NULL), "key");
    EVP_CIPHER_free(cipher);
    if (mac_len == 0) {
        int fixed = encrypt ? -1 : 4;
        require(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IV_FIXED, fixed, iv) == 1, "IV");
        return context;
    }
    require(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_MAC_KEY, mac_len, mac_key) > 0, "MAC");
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_TLS_VERSION, &version),
        OSSL_PARAM_construct_end(),
    };
    require(EVP_CIPHER_CTX_set_params(context, params) == 1, "version");
    return context;
}

static int record(EVP_CIPHER_CTX *context, uint64_t sequence, int len, unsigned char *body, int whole)
{
    unsigned char aad[AAD] = { [8] = 23, [9] = 3, [10] = 3 };
    for (int index = 0; index < 8; index++)
        aad[index] = (unsigned char)(sequence >> (56 - 8 * index));
    aad[11] = (unsigned char)(len >> 8);
    aad[12] = (unsigned char)len;
    require(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_TLS1_AAD, AAD, aad) > 0, "additional data");
    int written = -1;
    require(EVP_CipherUpdate(context, body, &written, body, whole) == 1, "a record");
    return written;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void suite(const char *name, int mac_len, unsigned long records)
{
    int front = mac_len ? 16 : 8;
    int whole = mac_len ? 16 + (PAYLOAD + mac_len) / 16 * 16 + 16 : 8 + PAYLOAD + 16;
    EVP_CIPHER_CTX *writer = keyed(name, mac_len, 1), *reader = keyed(name, mac_len, 0);
    unsigned char *body = malloc((size_t)whole);
    unsigned long before = 0;
    double start = 0;
    /* The first few are for what is made at the first use. */
    for (unsigned long count = 0; count < records + 10; count++) {
        if (count == 10) {
            before = asked;
            start = seconds();
        }
        memset(body, (int)count, (size_t)whole);
        require(record(writer, count, front + PAYLOAD, body, whole) == whole, "sealed");
        require(record(reader, count, whole, body, whole) == PAYLOAD, "opened");
        require(body[front + PAYLOAD - 1] == (unsigned char)count, "what was sealed");
    }
    double took = seconds() - start;
    printf("%s: %lu allocations, %.0f ns\n", name, asked - before, 1e9 * took / (double)records);
    free(body);
    EVP_CIPHER_CTX_free(writer);
    EVP_CIPHER_CTX_free(reader);
}

int main(int count, char **arguments)
{
    require(count >= 2, "a folder is named");
    unsigned long records = count > 2 ? strtoul(arguments[2], NULL, 10) : 1000;
    char config[4096];
    snprintf(config, sizeof config, "%s/openssl.cnf", arguments[1]);
    library = OSSL_LIB_CTX_new();
    require(library != NULL, "a library context");
    require(OSSL_PROVIDER_set_default_search_path(library, arguments[1]) == 1, "a search path");
    require(OSSL_LIB_CTX_load_config(library, config) == 1, "a configuration");
    suite("AES-256-GCM", 0, records);
    suite("AES-256-CBC-HMAC-SHA1", 20, records);
    suite("AES-256-CBC-HMAC-SHA256", 32, records);
    return 0;
}
