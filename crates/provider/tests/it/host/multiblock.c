/* libssl's multiblock protocol (ssl3_write_bytes, tls_write_records_multiblock): what fits it, and
 * what does not. */
#include "host.h"

#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 5, AAD = 13, BLOCK = 16, TAG = 16, EXPLICIT = 8, MOST = 16384 };
enum { TLS_1_1 = 0x0302, TLS_1_2 = 0x0303, MAX_RECORDS = 64 };

struct suite {
    const char *name;
    /* Null for GCM. */
    const char *digest;
    size_t key_len, mac_len;
    /* Whether OpenSSL has such a composite. */
    int composite;
};

static const struct suite SUITES[] = {
    { "AES-128-GCM", NULL, 16, 0, 0 },
    { "AES-256-GCM", NULL, 32, 0, 0 },
    { "AES-128-CBC-HMAC-SHA1", "SHA1", 16, 20, 1 },
    { "AES-256-CBC-HMAC-SHA1", "SHA1", 32, 20, 1 },
    { "AES-128-CBC-HMAC-SHA256", "SHA256", 16, 32, 1 },
    { "AES-256-CBC-HMAC-SHA256", "SHA256", 32, 32, 1 },
};

/* Paper mode's suite. */
static const struct suite PAPER = { "AES-256-CBC", "SHA384", 32, 48, 0 };

struct connection {
    const struct suite *suite;
    unsigned version;
    unsigned char key[32], mac_key[48], iv[12];
    uint64_t sequence;
    EVP_CIPHER_CTX *writer, *their_reader, *our_reader;
};

static EVP_CIPHER_CTX *keyed(struct connection *of, const char *provider, int encrypt)
{
    EVP_CIPHER_CTX *context = keyless(of->suite->name, provider, encrypt);
    static const unsigned char zeros[BLOCK];
    if (of->suite->mac_len == 0) {
        REQUIRE(EVP_CipherInit_ex2(context, NULL, of->key, NULL, encrypt, NULL) == 1);
        int fixed = encrypt ? -1 : 4;
        REQUIRE(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IV_FIXED, fixed, of->iv) == 1);
        return context;
    }
    REQUIRE(EVP_CipherInit_ex2(context, NULL, of->key, zeros, encrypt, NULL) == 1);
    int mac_len = (int)of->suite->mac_len;
    REQUIRE(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_MAC_KEY, mac_len, of->mac_key) > 0);
    /* libssl says these once the keys are there. */
    size_t no_mac = 0;
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_TLS_VERSION, &of->version),
        OSSL_PARAM_construct_size_t(OSSL_CIPHER_PARAM_TLS_MAC_SIZE, &no_mac),
        OSSL_PARAM_construct_end(),
    };
    REQUIRE(EVP_CIPHER_CTX_set_params(context, params) == 1);
    return context;
}

static void connect(struct connection *of, const struct suite *suite, unsigned version)
{
    doing("%s in %#x", suite->name, version);
    memset(of, 0, sizeof *of);
    of->suite = suite;
    of->version = version;
    randomize(of->key, sizeof of->key);
    randomize(of->mac_key, sizeof of->mac_key);
    randomize(of->iv, sizeof of->iv);
    /* The low half of the sequence wraps among the first records. */
    of->sequence = 0xffffffffULL - 5;
    of->writer = keyed(of, "wattlock", 1);
    if (suite->mac_len == 0 || suite->composite) {
        of->their_reader = keyed(of, "default", 0);
        of->our_reader = keyed(of, "wattlock", 0);
    }
}

static void disconnect(struct connection *of)
{
    EVP_CIPHER_CTX_free(of->writer);
    EVP_CIPHER_CTX_free(of->their_reader);
    EVP_CIPHER_CTX_free(of->our_reader);
}

static unsigned char *additional(const struct connection *of, size_t len)
{
    unsigned char *aad = exact(AAD);
    for (int index = 0; index < 8; index++)
        aad[index] = (unsigned char)(of->sequence >> (56 - 8 * index));
    aad[8] = 23;
    aad[9] = (unsigned char)(of->version >> 8);
    aad[10] = (unsigned char)of->version;
    aad[11] = (unsigned char)(len >> 8);
    aad[12] = (unsigned char)len;
    return aad;
}

/* A record's body in one update in place, by a provider's path for single records. */
static void opens(struct connection *of, EVP_CIPHER_CTX *reader, const unsigned char *record,
                  size_t len, const unsigned char *payload, size_t payload_len)
{
    unsigned char *aad = additional(of, len);
    REQUIRE(EVP_CIPHER_CTX_ctrl(reader, EVP_CTRL_AEAD_TLS1_AAD, AAD, aad) > 0);
    free(aad);
    unsigned char *body = exact(len);
    memcpy(body, record, len);
    int written = -1;
    REQUIRE(EVP_CipherUpdate(reader, body, &written, body, (int)len) == 1);
    REQUIRE((size_t)written == payload_len);
    size_t before = of->suite->mac_len == 0 ? EXPLICIT : BLOCK;
    REQUIRE(memcmp(body + before, payload, payload_len) == 0);
    free(body);
}

/* The same from the standard's text, with CBC and HMAC by themselves. */
static void opens_by_hand(struct connection *of, const unsigned char *record, size_t len,
                          const unsigned char *payload, size_t payload_len)
{
    REQUIRE(len % BLOCK == 0 && len >= BLOCK + payload_len + of->suite->mac_len + 1);
    EVP_CIPHER *cbc = fetched(of->suite->key_len == 16 ? "AES-128-CBC" : "AES-256-CBC", "default");
    EVP_CIPHER_CTX *reader = EVP_CIPHER_CTX_new();
    REQUIRE(EVP_DecryptInit_ex2(reader, cbc, of->key, record, NULL) == 1);
    REQUIRE(EVP_CIPHER_CTX_set_padding(reader, 0) == 1);
    size_t body_len = len - BLOCK;
    unsigned char *body = exact(body_len);
    int written = 0;
    REQUIRE(EVP_DecryptUpdate(reader, body, &written, record + BLOCK, (int)body_len) == 1);
    REQUIRE((size_t)written == body_len && memcmp(body, payload, payload_len) == 0);
    size_t padding = body_len - payload_len - of->suite->mac_len;
    for (size_t index = body_len - padding; index < body_len; index++)
        REQUIRE(body[index] == padding - 1);
    unsigned char *aad = additional(of, payload_len);
    unsigned char *signed_bytes = exact(AAD + payload_len), mac[EVP_MAX_MD_SIZE];
    memcpy(signed_bytes, aad, AAD);
    memcpy(signed_bytes + AAD, payload, payload_len);
    size_t mac_len = 0;
    REQUIRE(EVP_Q_mac(library(), "HMAC", "provider=default", of->suite->digest, NULL, of->mac_key,
                      of->suite->mac_len, signed_bytes, AAD + payload_len, mac, sizeof mac,
                      &mac_len) != NULL);
    REQUIRE(mac_len == of->suite->mac_len && memcmp(mac, body + payload_len, mac_len) == 0);
    free(signed_bytes);
    free(aad);
    free(body);
    EVP_CIPHER_CTX_free(reader);
    EVP_CIPHER_free(cbc);
}

static uint64_t number(const unsigned char *bytes)
{
    uint64_t value = 0;
    for (int index = 0; index < 8; index++)
        value = value << 8 | bytes[index];
    return value;
}

/* One write of `total` bytes as `records` records. */
static void write_opens(struct connection *of, unsigned records, size_t total)
{
    doing("%s in %#x: %u records of %zu bytes", of->suite->name, of->version, records, total);
    size_t fragment = total / records, last = total - fragment * (records - 1);
    int most = EVP_CIPHER_CTX_ctrl(of->writer, EVP_CTRL_TLS1_1_MULTIBLOCK_MAX_BUFSIZE, (int)last,
                                   NULL);
    REQUIRE(most > (int)last);
    unsigned char *aad = additional(of, 0);
    EVP_CTRL_TLS1_1_MULTIBLOCK_PARAM step = { NULL, aad, total, records };
    int packed = EVP_CIPHER_CTX_ctrl(of->writer, EVP_CTRL_TLS1_1_MULTIBLOCK_AAD, sizeof step, &step);
    REQUIRE(packed > 0 && (unsigned)packed <= (unsigned)most * records);
    REQUIRE(step.interleave == records);
    /* The provider has to keep a copy. */
    memset(aad, 0, AAD);
    free(aad);
    unsigned char *payload = random_bytes(total), *before = exact(total);
    memcpy(before, payload, total);
    unsigned char *out = exact((size_t)packed);
    step.out = out;
    step.inp = payload;
    int encrypt = EVP_CTRL_TLS1_1_MULTIBLOCK_ENCRYPT;
    REQUIRE(EVP_CIPHER_CTX_ctrl(of->writer, encrypt, sizeof step, &step) == packed);
    REQUIRE(memcmp(before, payload, total) == 0);

    const unsigned char *at = out, *end = out + packed, *text = payload;
    for (unsigned index = 0; index < records; index++) {
        size_t payload_len = index + 1 == records ? last : fragment;
        REQUIRE(end - at >= HEADER);
        REQUIRE(at[0] == 23 && (unsigned)(at[1] << 8 | at[2]) == of->version);
        size_t len = (size_t)at[3] << 8 | at[4];
        at += HEADER;
        REQUIRE((size_t)(end - at) >= len);
        if (of->suite->mac_len == 0)
            REQUIRE(number(at) == number(out + HEADER) + index);
        else
            opens_by_hand(of, at, len, text, payload_len);
        if (of->their_reader != NULL) {
            opens(of, of->their_reader, at, len, text, payload_len);
            opens(of, of->our_reader, at, len, text, payload_len);
        }
        of->sequence++;
        at += len;
        text += payload_len;
    }
    REQUIRE(at == end);
    free(out);
    free(before);
    free(payload);
}

static void every_write_opens(const struct suite *suite, unsigned version, size_t stride)
{
    static const size_t SHORT[] = { 1, 2, 15, 16, 17, 47, 255, 1000 };
    static const size_t LONG[] = { 4096, 15872, MOST };
    static const unsigned FEW[] = { 4, 8, 1, 63, MAX_RECORDS };
    struct connection of;
    connect(&of, suite, version);
    for (unsigned records = 1; records <= MAX_RECORDS; records += (unsigned)stride)
        for (size_t index = 0; index < sizeof SHORT / sizeof *SHORT; index++)
            write_opens(&of, records, SHORT[index] * records + below(records));
    for (size_t few = 0; few < (stride == 1 ? 5 : 2); few++)
        for (size_t index = 0; index < sizeof LONG / sizeof *LONG; index++)
            write_opens(&of, FEW[few], LONG[index] * FEW[few]);
    disconnect(&of);
}

void multiblock_is_opened_by_the_default_provider(int paper_mode, size_t stride)
{
    size_t gcm = 2, all = sizeof SUITES / sizeof *SUITES;
    for (size_t index = 0; index < all; index++) {
        every_write_opens(&SUITES[index], TLS_1_2, stride);
        if (index >= gcm)
            every_write_opens(&SUITES[index], TLS_1_1, stride);
    }
    if (paper_mode)
        every_write_opens(&PAPER, TLS_1_2, stride);
}

/* Steps of which one does not fit. What stands here are the values that fit. */
struct wrong {
    const char *what;
    enum {
        NO_PLAN, NO_PAYLOAD, NO_OUT, NO_AAD, NO_RECORDS, IN_PLACE, OVER_THE_END, OVER_THE_START,
        OTHER_KEY, DECRYPTING, TWICE, OTHER_LEN, OTHER_RECORDS, NUMBER_OF_THREE, AAD_AS_NUMBER,
        PLAN_OF, FRAGMENT, WITHOUT_KEY, WITHOUT_IV_OR_MAC
    } how;
    size_t total;
    unsigned records;
    unsigned char type, minor, low_len;
    const struct suite *suite;
};

static const struct wrong WRONG[] = {
    { "records before a plan", NO_PLAN, 0, 0, 0, 0, 0, NULL },
    { "a plan for two writes", TWICE, 0, 0, 0, 0, 0, NULL },
    { "a write without payload", NO_PAYLOAD, 0, 0, 0, 0, 0, NULL },
    { "a write to nowhere", NO_OUT, 0, 0, 0, 0, 0, NULL },
    { "additional data from nowhere", NO_AAD, 0, 0, 0, 0, 0, NULL },
    { "a plan without a number of records", NO_RECORDS, 0, 0, 0, 0, 0, NULL },
    { "a number of records of three bytes", NUMBER_OF_THREE, 0, 0, 0, 0, 0, NULL },
    { "additional data that is a number", AAD_AS_NUMBER, 0, 0, 0, 0, 0, NULL },
    { "in place", IN_PLACE, 0, 0, 0, 0, 0, NULL },
    { "over the payload's end", OVER_THE_END, 0, 0, 0, 0, 0, NULL },
    { "over the payload's start", OVER_THE_START, 0, 0, 0, 0, 0, NULL },
    { "another key than planned with", OTHER_KEY, 0, 0, 0, 0, 0, NULL },
    { "a plan, and then decryption", DECRYPTING, 0, 0, 0, 0, 0, NULL },
    { "another length than planned", OTHER_LEN, 0, 0, 0, 0, 0, NULL },
    { "another number of records than planned", OTHER_RECORDS, 0, 0, 0, 0, 0, NULL },
    { "no payload", PLAN_OF, 0, 4, 23, 3, 0, NULL },
    { "fewer bytes than records", PLAN_OF, 3, 4, 23, 3, 0, NULL },
    { "a byte too many", PLAN_OF, 4 * MOST + 1, 4, 23, 3, 0, NULL },
    { "the last record too long", PLAN_OF, 64 * MOST - 1, 64, 23, 3, 0, NULL },
    { "all bytes there are", PLAN_OF, SIZE_MAX, 4, 23, 3, 0, NULL },
    { "half of them", PLAN_OF, SIZE_MAX / 2, 64, 23, 3, 0, NULL },
    { "no records", PLAN_OF, 4096, 0, 23, 3, 0, NULL },
    { "more records than there may be", PLAN_OF, 65 * 16, 65, 23, 3, 0, NULL },
    { "records without number", PLAN_OF, 4096, 0xffffffff, 23, 3, 0, NULL },
    { "a handshake", PLAN_OF, 4096, 4, 22, 3, 0, NULL },
    { "TLS 1.0", PLAN_OF, 4096, 4, 23, 1, 0, NULL },
    { "TLS 1.3", PLAN_OF, 4096, 4, 23, 4, 0, NULL },
    { "a length in the additional data", PLAN_OF, 4096, 4, 23, 3, 16, NULL },
    { "a fragment too long", FRAGMENT, MOST + 1, 0, 0, 0, 0, NULL },
    { "a fragment of -1", FRAGMENT, SIZE_MAX, 0, 0, 0, 0, NULL },
    { "no key", WITHOUT_KEY, 0, 0, 0, 0, 0, NULL },
    { "no IV, or no key of a MAC", WITHOUT_IV_OR_MAC, 0, 0, 0, 0, 0, NULL },
};

static int plan(EVP_CIPHER_CTX *context, const unsigned char *aad, size_t total, unsigned records)
{
    EVP_CTRL_TLS1_1_MULTIBLOCK_PARAM step = { NULL, aad, total, records };
    return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_TLS1_1_MULTIBLOCK_AAD, sizeof step, &step);
}

static int seal(EVP_CIPHER_CTX *context, unsigned char *out, const unsigned char *payload,
                size_t total, unsigned records)
{
    EVP_CTRL_TLS1_1_MULTIBLOCK_PARAM step = { out, payload, total, records };
    return EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_TLS1_1_MULTIBLOCK_ENCRYPT, sizeof step, &step);
}

static int offered(const struct suite *suite)
{
    EVP_CIPHER *cipher = fetched(suite->name, "wattlock");
    int offer = -1;
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_int(OSSL_CIPHER_PARAM_TLS1_MULTIBLOCK, &offer),
        OSSL_PARAM_construct_end(),
    };
    /* Not EVP_CIPHER_get_flags, which OpenSSL remembers from the first fetch. */
    REQUIRE(EVP_CIPHER_get_params(cipher, params) == 1);
    EVP_CIPHER_free(cipher);
    return offer;
}

static int last_step(struct connection *of, const struct wrong *wrong)
{
    enum { TOTAL = 4 * 1000, RECORDS = 4, ROOM = 8192 };
    EVP_CIPHER_CTX *context = of->writer;
    unsigned char *aad = additional(of, 0), *payload = random_bytes(TOTAL), *out = exact(ROOM);
    unsigned char *both = random_bytes(3 * ROOM), number_of_three[3] = { 4, 0, 0 };
    unsigned records = RECORDS;
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_TLS1_MULTIBLOCK_AAD, aad, TOTAL),
        OSSL_PARAM_construct_uint(OSSL_CIPHER_PARAM_TLS1_MULTIBLOCK_INTERLEAVE, &records),
        OSSL_PARAM_construct_end(),
    };
    int planned = 1, result = 1;
    switch (wrong->how) {
    case NO_PLAN: case PLAN_OF: case FRAGMENT: case WITHOUT_KEY: case WITHOUT_IV_OR_MAC:
    case NO_AAD: case NO_RECORDS: case NUMBER_OF_THREE: case AAD_AS_NUMBER:
        break;
    default:
        planned = plan(context, aad, TOTAL, RECORDS);
    }
    REQUIRE(planned > 0);
    switch (wrong->how) {
    case NO_PLAN: result = seal(context, out, payload, TOTAL, RECORDS); break;
    case TWICE:
        REQUIRE(seal(context, out, payload, TOTAL, RECORDS) == planned);
        result = seal(context, out, payload, TOTAL, RECORDS);
        break;
    case NO_PAYLOAD: result = seal(context, out, NULL, TOTAL, RECORDS); break;
    case NO_OUT: result = seal(context, NULL, payload, TOTAL, RECORDS); break;
    case NO_AAD: result = plan(context, NULL, TOTAL, RECORDS); break;
    case NO_RECORDS:
        params[1] = OSSL_PARAM_construct_end();
        result = EVP_CIPHER_CTX_set_params(context, params);
        break;
    case NUMBER_OF_THREE:
        params[1].data = number_of_three;
        params[1].data_size = sizeof number_of_three;
        result = EVP_CIPHER_CTX_set_params(context, params);
        break;
    case AAD_AS_NUMBER:
        params[0].data_type = OSSL_PARAM_UNSIGNED_INTEGER;
        result = EVP_CIPHER_CTX_set_params(context, params);
        break;
    case IN_PLACE: result = seal(context, both, both, TOTAL, RECORDS); break;
    case OVER_THE_END: result = seal(context, both + TOTAL - 1, both, TOTAL, RECORDS); break;
    case OVER_THE_START:
        result = seal(context, both, both + planned - 1, TOTAL, RECORDS);
        break;
    case OTHER_KEY:
        of->key[0] ^= 1;
        REQUIRE(EVP_EncryptInit_ex2(context, NULL, of->key, NULL, NULL) == 1);
        result = seal(context, out, payload, TOTAL, RECORDS);
        break;
    case DECRYPTING:
        REQUIRE(EVP_DecryptInit_ex2(context, NULL, of->key, NULL, NULL) == 1);
        result = seal(context, out, payload, TOTAL, RECORDS);
        break;
    case OTHER_LEN: result = seal(context, out, payload, TOTAL - 4, RECORDS); break;
    case OTHER_RECORDS: result = seal(context, out, payload, TOTAL, RECORDS + 1); break;
    case PLAN_OF:
        aad[8] = wrong->type;
        aad[10] = wrong->minor;
        aad[12] = wrong->low_len;
        result = plan(context, aad, wrong->total, wrong->records);
        break;
    case FRAGMENT:
        result = EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_TLS1_1_MULTIBLOCK_MAX_BUFSIZE,
                                     (int)wrong->total, NULL);
        break;
    case WITHOUT_KEY: case WITHOUT_IV_OR_MAC:
        context = keyless(wrong->suite->name, "wattlock", 1);
        if (wrong->how == WITHOUT_IV_OR_MAC)
            REQUIRE(EVP_EncryptInit_ex2(context, NULL, of->key, NULL, NULL) == 1);
        result = plan(context, aad, TOTAL, RECORDS);
        EVP_CIPHER_CTX_free(context);
        break;
    }
    free(both);
    free(out);
    free(payload);
    free(aad);
    return result;
}

static void is_refused(const void *argument)
{
    const struct wrong *wrong = argument;
    struct connection of;
    connect(&of, wrong->suite, TLS_1_2);
    doing("%s: %s", wrong->suite->name, wrong->what);
    REQUIRE(offered(wrong->suite) == 1);
    refused(last_step(&of, wrong));
    REQUIRE(offered(wrong->suite) == 0);
    disconnect(&of);
}

void multiblock_refuses_wrong_steps(int paper_mode)
{
    const struct suite *suites[] = { &SUITES[1], &SUITES[5], &PAPER };
    for (int index = 0; index < (paper_mode ? 3 : 2); index++) {
        for (size_t row = 0; row < sizeof WRONG / sizeof *WRONG; row++) {
            struct wrong wrong = WRONG[row];
            wrong.suite = suites[index];
            apart(is_refused, &wrong);
        }
    }
}
