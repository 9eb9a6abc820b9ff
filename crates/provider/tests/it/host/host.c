/* The program: `host FOLDER [paper] [STRIDE]`, or `host FOLDER` with `control`, `sandbox`,
 * `sandbox-control`, `draws` or `crowd PROCESSES AT_A_TIME`; FOLDER holds wattlock.so and openssl.cnf. Exits with 0
 * if all is as it should be. */
#include "host.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static OSSL_LIB_CTX *context;
static char subject[256] = "starting";
static uint64_t state = 0x2545f4914f6cdd1dULL;

void failed(const char *file, int line, const char *condition)
{
    fprintf(stderr, "%s:%d: %s: not so: %s\n", file, line, subject, condition);
    ERR_print_errors_fp(stderr);
    exit(1);
}

void doing(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(subject, sizeof subject, format, arguments);
    va_end(arguments);
}

OSSL_LIB_CTX *library(void)
{
    return context;
}

EVP_CIPHER *fetched(const char *name, const char *provider)
{
    char properties[64];
    snprintf(properties, sizeof properties, "provider=%s", provider);
    EVP_CIPHER *cipher = EVP_CIPHER_fetch(context, name, properties);
    if (cipher == NULL)
        ERR_clear_error();
    return cipher;
}

EVP_CIPHER_CTX *keyless(const char *name, const char *provider, int encrypt)
{
    EVP_CIPHER *cipher = fetched(name, provider);
    EVP_CIPHER_CTX *made = EVP_CIPHER_CTX_new();
    REQUIRE(cipher != NULL && made != NULL);
    REQUIRE(EVP_CipherInit_ex2(made, cipher, NULL, NULL, encrypt, NULL) == 1);
    EVP_CIPHER_free(cipher);
    return made;
}

unsigned char *exact(size_t len)
{
    /* Nothing may be read from or written to an empty one either. */
    unsigned char *bytes = malloc(len);
    REQUIRE(bytes != NULL || len == 0);
    memset(bytes, 0xee, len);
    return bytes;
}

/* xorshift64* */
static uint64_t next(void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545f4914f6cdd1dULL;
}

size_t below(size_t end)
{
    return (size_t)(next() >> 16) % end;
}

void randomize(unsigned char *bytes, size_t len)
{
    for (size_t index = 0; index < len; index++)
        bytes[index] = (unsigned char)(next() >> 24);
}

unsigned char *random_bytes(size_t len)
{
    unsigned char *bytes = exact(len);
    randomize(bytes, len);
    return bytes;
}

const char *reason(void)
{
    unsigned long error = ERR_peek_error();
    const char *text = error == 0 ? NULL : ERR_reason_error_string(error);
    ERR_clear_error();
    return text;
}

void refused(int result)
{
    REQUIRE(result <= 0);
    REQUIRE(reason() != NULL);
}

void apart(void (*body)(const void *), const void *argument)
{
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        body(argument);
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A context goes on after its provider was unloaded, and a provider comes again. */
static void unloads(const char *folder)
{
    static const unsigned char key[32], iv[16];
    doing("unloading");
    for (int times = 0; times < 3; times++) {
        OSSL_LIB_CTX *other = OSSL_LIB_CTX_new();
        REQUIRE(OSSL_PROVIDER_set_default_search_path(other, folder) == 1);
        OSSL_PROVIDER *provider = OSSL_PROVIDER_load(other, "wattlock");
        REQUIRE(provider != NULL);
        EVP_CIPHER *cipher = EVP_CIPHER_fetch(other, "AES-256-CTR", NULL);
        EVP_CIPHER_CTX *user = EVP_CIPHER_CTX_new();
        REQUIRE(EVP_EncryptInit_ex2(user, cipher, key, iv, NULL) == 1);
        EVP_CIPHER_free(cipher);
        REQUIRE(OSSL_PROVIDER_unload(provider) == 1);
        unsigned char *bytes = random_bytes(33);
        int written = 0;
        REQUIRE(EVP_CipherUpdate(user, bytes, &written, bytes, 33) == 1 && written == 33);
        free(bytes);
        EVP_CIPHER_CTX_free(user);
        OSSL_LIB_CTX_free(other);
    }
}

int main(int count, char **arguments)
{
    /* With a buffer of its own, it is never asked what file it is. */
    static char buffer[BUFSIZ];
    REQUIRE(setvbuf(stdout, buffer, _IOFBF, sizeof buffer) == 0);
    REQUIRE(count >= 2);
    /* What libcrypto reads from files, it reads now. */
    REQUIRE(OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CONFIG | OPENSSL_INIT_LOAD_CRYPTO_STRINGS, NULL) == 1);
    int paper = count > 2 && strcmp(arguments[2], "paper") == 0;
    size_t stride = count > 2 + paper ? strtoul(arguments[2 + paper], NULL, 10) : 1;
    char config[4096];
    snprintf(config, sizeof config, "%s/openssl.cnf", arguments[1]);
    context = OSSL_LIB_CTX_new();
    REQUIRE(context != NULL);
    REQUIRE(OSSL_PROVIDER_set_default_search_path(context, arguments[1]) == 1);
    REQUIRE(OSSL_LIB_CTX_load_config(context, config) == 1);
    OSSL_PROVIDER *theirs = OSSL_PROVIDER_load(context, "default");
    OSSL_PROVIDER *ours = OSSL_PROVIDER_load(context, "wattlock");
    REQUIRE(theirs != NULL && ours != NULL);

    if (count > 2 && strcmp(arguments[2], "control") == 0) {
        reads_too_much();
        return 0;
    }
    if (count > 2 && strcmp(arguments[2], "sandbox") == 0)
        every_cipher_works_in_a_sandbox(1);
    if (count > 2 && strcmp(arguments[2], "sandbox-control") == 0)
        a_sandbox_forbids();
    if (count > 2 && strcmp(arguments[2], "draws") == 0) {
        no_two_processes_draw_the_same();
        puts("as it should be");
        return 0;
    }
    if (count > 4 && strcmp(arguments[2], "crowd") == 0) {
        a_crowd_counts(strtoul(arguments[3], NULL, 10), strtoul(arguments[4], NULL, 10));
        puts("as it should be");
        return 0;
    }
    REQUIRE(stride > 0);
    multiblock_is_opened_by_the_default_provider(paper, stride);
    multiblock_refuses_wrong_steps(paper);
    wrong_calls_are_refused(400 / stride + 1);

    unloads(arguments[1]);

    OSSL_PROVIDER_unload(ours);
    OSSL_PROVIDER_unload(theirs);
    OSSL_LIB_CTX_free(context);
    puts("as it should be");
    return 0;
}
