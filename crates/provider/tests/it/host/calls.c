/* Wrong calls of EVP to every cipher of ours: none may touch a byte outside of its buffers, and
 * every failure has a reason. */
#include "host.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_KEY = 32, MOST_IV = 128, BLOCK = 16 };

static EVP_CIPHER_CTX *begun(const char *name, int encrypt)
{
    static const unsigned char key[MOST_KEY] = { 1 }, iv[MOST_IV] = { 2 };
    EVP_CIPHER_CTX *context = keyless(name, "wattlock", encrypt);
    REQUIRE(EVP_CipherInit_ex2(context, NULL, key, iv, encrypt, NULL) == 1);
    return context;
}

static int is_mode(const char *name, const char *mode)
{
    return strstr(name, mode) != NULL;
}

/* Here GCM has no reason, as in OpenSSL's own provider. */
static void refused_at_the_end(const char *name, int result)
{
    if (!is_mode(name, "GCM")) {
        refused(result);
        return;
    }
    REQUIRE(result <= 0);
    REQUIRE(reason() == NULL);
}

static void without_a_key(const char *name)
{
    doing("%s without a key", name);
    for (int encrypt = 0; encrypt < 2; encrypt++) {
        EVP_CIPHER_CTX *context = keyless(name, "wattlock", encrypt);
        unsigned char *in = random_bytes(64), *out = exact(64 + BLOCK);
        int written = -1;
        refused(EVP_CipherUpdate(context, out, &written, in, 64));
        REQUIRE(written == 0);
        refused_at_the_end(name, EVP_CipherFinal_ex(context, out, &written));
        REQUIRE(written == 0);
        refused_at_the_end(name, EVP_Cipher(context, out, in, 64));
        EVP_CIPHER_CTX *copy = EVP_CIPHER_CTX_new();
        REQUIRE(EVP_CIPHER_CTX_copy(copy, context) == 1);
        refused(EVP_CipherUpdate(copy, out, &written, in, 64));
        free(out);
        free(in);
        /* The copy outlives the original. */
        EVP_CIPHER_CTX_free(context);
        EVP_CIPHER_CTX_free(copy);
    }
    /* A context that never had a cipher. */
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new(), *copy = EVP_CIPHER_CTX_new();
    unsigned char out[64];
    int written = -1;
    REQUIRE(EVP_CipherUpdate(context, out, &written, out, 16) <= 0);
    REQUIRE(EVP_CipherFinal_ex(context, out, &written) <= 0);
    REQUIRE(EVP_CIPHER_CTX_copy(copy, context) <= 0);
    REQUIRE(EVP_CIPHER_CTX_reset(context) == 1 && EVP_CIPHER_CTX_reset(context) == 1);
    EVP_CIPHER_CTX_free(copy);
    EVP_CIPHER_CTX_free(context);
    ERR_clear_error();
}

/* EVP hands a negative length on as one near the end of memory. */
static void lengths_below_zero(const char *name)
{
    static const int LENGTHS[] = { -1, -15, -16, -17, -32, INT_MIN, INT_MIN + 16 };
    doing("%s with a length below zero", name);
    for (int encrypt = 0; encrypt < 2; encrypt++) {
        for (size_t index = 0; index < sizeof LENGTHS / sizeof *LENGTHS; index++) {
            for (int held = 0; held < 2; held++) {
                unsigned char *in = random_bytes(32), *out = exact(64);
                int written = -1;
                EVP_CIPHER_CTX *context = begun(name, encrypt);
                if (held && !is_mode(name, "HMAC"))
                    REQUIRE(EVP_CipherUpdate(context, out, &written, in, 5) == 1);
                refused(EVP_CipherUpdate(context, out, &written, in, LENGTHS[index]));
                refused(EVP_CipherUpdate(context, in, &written, in, LENGTHS[index]));
                refused(EVP_CipherUpdate(context, NULL, &written, in, LENGTHS[index]));
                EVP_CIPHER_CTX_free(context);
                free(out);
                free(in);
            }
        }
    }
}

static void nowhere(const char *name)
{
    doing("%s with null pointers", name);
    for (int encrypt = 0; encrypt < 2; encrypt++) {
        EVP_CIPHER_CTX *context = begun(name, encrypt);
        unsigned char *bytes = exact(32 + BLOCK);
        int written = -1;
        EVP_CipherUpdate(context, bytes, &written, NULL, 16);
        EVP_CipherUpdate(context, NULL, &written, NULL, 16);
        EVP_CipherUpdate(context, NULL, &written, NULL, 0);
        EVP_CipherUpdate(context, bytes, &written, bytes, 0);
        EVP_Cipher(context, NULL, NULL, 0);
        EVP_Cipher(context, bytes, NULL, 16);
        EVP_Cipher(context, NULL, NULL, 16);
        ERR_clear_error();
        if (!is_mode(name, "GCM"))
            refused(EVP_Cipher(context, NULL, bytes, 32));
        EVP_CIPHER_CTX_set_params(context, NULL);
        EVP_CIPHER_CTX_get_params(context, NULL);
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, NULL);
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, NULL);
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IV_FIXED, -1, NULL);
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IV_FIXED, 4, NULL);
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_IV_GEN, 8, NULL);
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_TLS1_AAD, 13, NULL);
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_MAC_KEY, 32, NULL);
        ERR_clear_error();
        free(bytes);
        EVP_CIPHER_CTX_free(context);
    }
}

static void wrong_lengths(const char *name)
{
    static const size_t LENGTHS[] = { 0, 1, 15, 17, 31, 33, 64, 129, SIZE_MAX };
    doing("%s with wrong lengths", name);
    EVP_CIPHER_CTX *context = begun(name, 1);
    size_t right = (size_t)EVP_CIPHER_CTX_get_key_length(context);
    REQUIRE(right == 16 || right == 24 || right == 32);
    for (size_t index = 0; index < sizeof LENGTHS / sizeof *LENGTHS; index++) {
        size_t len = LENGTHS[index];
        REQUIRE(EVP_CIPHER_CTX_set_key_length(context, (int)len) <= 0);
        OSSL_PARAM params[] = {
            OSSL_PARAM_construct_size_t(OSSL_CIPHER_PARAM_KEYLEN, &len),
            OSSL_PARAM_construct_end(),
        };
        EVP_CIPHER_CTX_set_params(context, params);
        ERR_clear_error();
        /* Later versions accept any length that was not refused, until there is a key. */
        unsigned char *key = random_bytes(129);
        int again = EVP_CipherInit_ex2(context, NULL, key, NULL, 1, NULL);
        if ((size_t)EVP_CIPHER_CTX_get_key_length(context) == right)
            REQUIRE(again == 1);
        else
            refused(again);
        free(key);
        EVP_CIPHER_CTX_free(context);
        context = begun(name, 1);
        params[0].key = OSSL_CIPHER_PARAM_IVLEN;
        if (is_mode(name, "GCM") && (len == 0 || len > MOST_IV)) {
            ERR_clear_error();
            refused(EVP_CIPHER_CTX_set_params(context, params));
        }
        /* OpenSSL's own provider asks for the tag, the IV and the MAC's key with any length. */
        if (is_mode(name, "GCM")) {
            unsigned char *bytes = random_bytes(129);
            if (len == 0 || (len > 16 && len <= 129))
                refused(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, (int)len, bytes));
            if (len <= 129 && len != 13)
                REQUIRE(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_TLS1_AAD, (int)len, bytes) <= 0);
            if (len > 12 && len <= 129)
                refused(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IV_FIXED, (int)len, bytes));
            free(bytes);
        }
    }
    EVP_CIPHER_CTX_free(context);
    ERR_clear_error();
    if (!is_mode(name, "HMAC"))
        return;
    for (size_t len = 0; len <= 129; len++) {
        unsigned char *mac_key = random_bytes(len);
        context = begun(name, 1);
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_MAC_KEY, (int)len, mac_key);
        free(mac_key);
        EVP_CIPHER_CTX_free(context);
    }
    ERR_clear_error();
}

static void after_the_end(const char *name)
{
    doing("%s after its end", name);
    for (int encrypt = 0; encrypt < 2; encrypt++) {
        EVP_CIPHER_CTX *context = begun(name, encrypt);
        unsigned char *in = random_bytes(48), *out = exact(48 + BLOCK);
        int written = -1;
        EVP_CIPHER_CTX_set_padding(context, 0);
        REQUIRE(EVP_CipherUpdate(context, out, &written, in, 48) == 1);
        int ended = EVP_CipherFinal_ex(context, out, &written);
        ERR_clear_error();
        /* When decrypting with GCM, no tag was set. */
        REQUIRE(ended == 1 || (is_mode(name, "GCM") && !encrypt));
        EVP_CIPHER_CTX *copy = EVP_CIPHER_CTX_new();
        REQUIRE(EVP_CIPHER_CTX_copy(copy, context) == 1);
        for (int times = 0; times < 2; times++) {
            EVP_CIPHER_CTX *which = times == 0 ? context : copy;
            int more = EVP_CipherUpdate(which, out, &written, in, 48);
            /* A nonce must not be used again. */
            if (is_mode(name, "GCM") && encrypt)
                refused(more);
            EVP_CipherFinal_ex(which, out, &written);
            EVP_CipherFinal_ex(which, out, &written);
            ERR_clear_error();
        }
        EVP_CIPHER_CTX_free(copy);
        EVP_CIPHER_CTX_free(context);
        free(out);
        free(in);
    }
}

/* EVP_CIPHER_CTX_iv() keeps a pointer that has to stay good. */
static void pointers_to_ivs(const char *name)
{
    doing("%s's pointer to its IV", name);
    EVP_CIPHER_CTX *context = begun(name, 1);
    size_t len = (size_t)EVP_CIPHER_CTX_get_iv_length(context);
    unsigned char in[BLOCK] = { 0 }, out[2 * BLOCK];
    for (int part = 1; part <= BLOCK && len > 0; part++) {
        int step = is_mode(name, "HMAC") ? BLOCK : part, written = 0;
        REQUIRE(EVP_CipherUpdate(context, out, &written, in, step) == 1);
        const char *keys[] = { OSSL_CIPHER_PARAM_UPDATED_IV, OSSL_CIPHER_PARAM_IV };
        for (int index = 0; index < 2; index++) {
            void *pointer = NULL;
            unsigned char *copied = exact(len);
            OSSL_PARAM by_pointer[] = {
                OSSL_PARAM_construct_octet_ptr(keys[index], &pointer, len),
                OSSL_PARAM_construct_end(),
            };
            OSSL_PARAM by_copy[] = {
                OSSL_PARAM_construct_octet_string(keys[index], copied, len),
                OSSL_PARAM_construct_end(),
            };
            REQUIRE(EVP_CIPHER_CTX_get_params(context, by_pointer) == 1);
            REQUIRE(EVP_CIPHER_CTX_get_params(context, by_copy) == 1);
            REQUIRE(by_pointer[0].return_size == len && by_copy[0].return_size == len);
            REQUIRE(pointer != NULL && memcmp(pointer, copied, len) == 0);
            free(copied);
        }
    }
    EVP_CIPHER_CTX_free(context);
}

/* Every name that means something, as every type, in every small size. */
static void any_parameters(const char *name, size_t rounds)
{
    static const char *const KEYS[] = {
        "mode", "keylen", "ivlen", "blocksize", "aead", "padding", "num", "iv", "updated-iv", "tag",
        "taglen", "tls-version", "tls-mac", "tls-mac-size", "tlsaad", "tlsaadpad", "tlsivfixed",
        "tlsivgen", "tlsivinv", "mackey", "tls1multi_maxbufsz", "tls1multi_interleave",
        "tls1multi_aadpacklen", "tls1multi_enclen", "no-such-name", "",
    };
    enum { KINDS = 8, PARAMS = 3 };
    doing("%s with any parameters", name);
    EVP_CIPHER_CTX *context = begun(name, (int)below(2));
    for (size_t round = 0; round < rounds; round++) {
        OSSL_PARAM params[PARAMS + 1];
        unsigned char *data[PARAMS];
        /* A part of an IV that GCM does not take now: OpenSSL's own says no reason. */
        int unsaid = 0;
        for (int index = 0; index < PARAMS; index++) {
            unsigned type = (unsigned)below(KINDS);
            int is_pointer = type == OSSL_PARAM_UTF8_PTR || type == OSSL_PARAM_OCTET_PTR;
            size_t size = is_pointer ? sizeof(void *) : below(140);
            if (below(3) == 0)
                size = below(2) == 0 ? 4 : 8;
            if (is_pointer)
                size = sizeof(void *);
            const char *key = KEYS[below(sizeof KEYS / sizeof *KEYS)];
            /* A size of 0 asks for a whole IV there. */
            if (size == 0 && strcmp(key, "tlsivgen") == 0)
                size = 1;
            unsaid |= is_mode(name, "GCM") && strcmp(key, "tlsivinv") == 0;
            data[index] = below(8) == 0 ? NULL : random_bytes(size);
            params[index] = OSSL_PARAM_construct_end();
            params[index].key = key;
            params[index].data_type = type;
            params[index].data = data[index];
            params[index].data_size = size;
        }
        params[PARAMS] = OSSL_PARAM_construct_end();
        int result = below(2) == 0 ? EVP_CIPHER_CTX_set_params(context, params)
                                   : EVP_CIPHER_CTX_get_params(context, params);
        if (result != 1 && unsaid) {
            REQUIRE(result <= 0);
            ERR_clear_error();
        } else if (result != 1) {
            refused(result);
        }
        for (int index = 0; index < PARAMS; index++)
            free(data[index]);
    }
    EVP_CIPHER_CTX_free(context);
}

/* Any calls one after the other, on buffers that end where they say. */
static void any_calls(const char *name, size_t rounds)
{
    EVP_CIPHER_CTX *context = NULL;
    for (size_t round = 0; round < rounds; round++) {
        if (round % 25 == 0) {
            EVP_CIPHER_CTX_free(context);
            context = keyless(name, "wattlock", (int)below(2));
        }
        doing("%s, call %zu", name, round);
        size_t len = below(3) == 0 ? below(5) * BLOCK : below(70), shift = below(3) * below(20);
        unsigned char *key = random_bytes(MOST_KEY), *iv = random_bytes(MOST_IV);
        /* The place for the output is as large as EVP asks for; it may lie over the input. */
        unsigned char *memory = random_bytes(len + BLOCK + shift), *in = memory + shift;
        int written = -1, encrypt = (int)below(3) - 1;
        unsigned number = (unsigned)below(40);
        OSSL_PARAM params[] = {
            OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_TLS_VERSION, &number),
            OSSL_PARAM_construct_end(),
        };
        switch (below(16)) {
        case 0: EVP_CipherInit_ex2(context, NULL, key, iv, encrypt, NULL); break;
        case 1: EVP_CipherInit_ex2(context, NULL, key, NULL, encrypt, NULL); break;
        case 2: EVP_CipherInit_ex2(context, NULL, NULL, iv, encrypt, NULL); break;
        case 3: EVP_CipherInit_ex2(context, NULL, NULL, NULL, encrypt, NULL); break;
        case 4: case 5: EVP_CipherUpdate(context, memory, &written, in, (int)len); break;
        case 6: EVP_CipherUpdate(context, in, &written, in, (int)len); break;
        case 7: EVP_CipherUpdate(context, NULL, &written, in, (int)len); break;
        case 8: EVP_CipherFinal_ex(context, iv, &written); break;
        case 9: EVP_Cipher(context, memory, in, (unsigned)len); break;
        case 10: {
            EVP_CIPHER_CTX *copy = EVP_CIPHER_CTX_new();
            if (EVP_CIPHER_CTX_copy(copy, context) == 1) {
                EVP_CIPHER_CTX_free(context);
                context = copy;
            } else {
                EVP_CIPHER_CTX_free(copy);
            }
            break;
        }
        case 11:
            number = below(2) == 0 ? 0 : 0x0300 + (unsigned)below(6);
            EVP_CIPHER_CTX_set_params(context, params);
            break;
        case 12:
            params[0].key = below(2) == 0 ? OSSL_CIPHER_PARAM_PADDING : OSSL_CIPHER_PARAM_NUM;
            EVP_CIPHER_CTX_set_params(context, params);
            break;
        case 13: {
            size_t size = below(70);
            params[0] = OSSL_PARAM_construct_size_t(OSSL_CIPHER_PARAM_TLS_MAC_SIZE, &size);
            EVP_CIPHER_CTX_set_params(context, params);
            break;
        }
        case 14: {
            static const int CONTROLS[] = {
                EVP_CTRL_AEAD_SET_IVLEN, EVP_CTRL_AEAD_GET_TAG, EVP_CTRL_AEAD_SET_TAG,
                EVP_CTRL_AEAD_SET_IV_FIXED, EVP_CTRL_GCM_IV_GEN, EVP_CTRL_GCM_SET_IV_INV,
                EVP_CTRL_AEAD_SET_MAC_KEY,
            };
            EVP_CIPHER_CTX_ctrl(context, CONTROLS[below(7)], (int)below(MOST_IV), iv);
            break;
        }
        case 15:
            iv[9] = 3;
            iv[10] = (unsigned char)below(5);
            iv[11] = 0;
            iv[12] = (unsigned char)len;
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_TLS1_AAD, 13, iv);
            break;
        }
        REQUIRE(written <= (int)len + BLOCK);
        ERR_clear_error();
        free(memory);
        free(iv);
        free(key);
    }
    EVP_CIPHER_CTX_free(context);
}

/* IV_GEN with -1 gives the whole IV, of any length. */
static void whole_generated_iv(const char *name)
{
    doing("%s's generated IV", name);
    unsigned char *iv = random_bytes(12), *ours = exact(12), *theirs = exact(12);
    const char *providers[] = { "wattlock", "default" };
    for (int index = 0; index < 2; index++) {
        static const unsigned char key[MOST_KEY];
        EVP_CIPHER_CTX *context = keyless(name, providers[index], 1);
        REQUIRE(EVP_EncryptInit_ex2(context, NULL, key, NULL, NULL) == 1);
        REQUIRE(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IV_FIXED, -1, iv) == 1);
        unsigned char *place = index == 0 ? ours : theirs;
        REQUIRE(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_IV_GEN, -1, place) == 1);
        EVP_CIPHER_CTX_free(context);
    }
    REQUIRE(memcmp(ours, theirs, 12) == 0 && memcmp(ours, iv, 12) == 0);
    free(theirs);
    free(ours);
    free(iv);
}

static void of_one_cipher(EVP_CIPHER *cipher, void *argument)
{
    const char *provider = OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(cipher));
    if (strcmp(provider, "wattlock") != 0)
        return;
    const char *name = EVP_CIPHER_get0_name(cipher);
    size_t rounds = *(const size_t *)argument;
    without_a_key(name);
    lengths_below_zero(name);
    nowhere(name);
    wrong_lengths(name);
    after_the_end(name);
    pointers_to_ivs(name);
    any_parameters(name, 10 * rounds);
    any_calls(name, 25 * rounds);
    if (is_mode(name, "GCM"))
        whole_generated_iv(name);
    printf("%s\n", name);
}

void reads_too_much(void)
{
    enum { LEN = 64 };
    EVP_CIPHER_CTX *context = begun("AES-256-CTR", 1);
    unsigned char *in = random_bytes(LEN), *out = exact(LEN + 1);
    int written = 0;
    REQUIRE(EVP_CipherUpdate(context, out, &written, in, LEN + 1) == 1);
    free(out);
    free(in);
    EVP_CIPHER_CTX_free(context);
}

void wrong_calls_are_refused(size_t rounds)
{
    EVP_CIPHER_do_all_provided(library(), of_one_cipher, &rounds);
}
