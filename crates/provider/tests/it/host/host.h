/* A program in C that uses the provider as libssl does, and misuses it. What its parts share. */
#ifndef WATTLOCK_HOST_H
#define WATTLOCK_HOST_H

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <stddef.h>
#include <stdint.h>

/* Ends the program, with what it was doing and OpenSSL's errors, unless `condition` holds. */
#define REQUIRE(condition) ((condition) ? (void)0 : failed(__FILE__, __LINE__, #condition))

void failed(const char *file, int line, const char *condition);

/* What is said if something fails from here on. */
void doing(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The library context, with the default provider and ours. */
OSSL_LIB_CTX *library(void);

/* A cipher of a provider; null if it has none of that name. */
EVP_CIPHER *fetched(const char *name, const char *provider);

/* A context without a key. */
EVP_CIPHER_CTX *keyless(const char *name, const char *provider, int encrypt);

/* Allocates exactly `len` bytes, so that memory checkers see each access beyond. */
unsigned char *exact(size_t len);

/* The same with numbers that look random and are the same in each run. */
unsigned char *random_bytes(size_t len);
void randomize(unsigned char *bytes, size_t len);
size_t below(size_t end);

/* The oldest error's reason, or null; all errors are forgotten. */
const char *reason(void);

/* Requires that a call failed, and that OpenSSL can say why. */
void refused(int result);

/* Runs `body` in a process of its own, which has to end well. */
void apart(void (*body)(const void *), const void *argument);

/* Every number of records at once, with what a record may hold; opened again one by one. `stride`
 * leaves out fragments of more than a kilobyte, but for 4 and 8 records, and numbers of records. */
void multiblock_is_opened_by_the_default_provider(int paper_mode, size_t stride);

/* Steps that do not fit the protocol. */
void multiblock_refuses_wrong_steps(int paper_mode);

/* Has our provider read a byte behind a buffer, which a memory checker has to report. */
void reads_too_much(void);

/* Every cipher in processes that may read, write, wait and ask for memory, and nothing else; ends this
 * process. */
void every_cipher_works_in_a_sandbox(int paper_mode);
void a_sandbox_forbids(void);

/* Processes that come of one have different random numbers, however they were made. */
void no_two_processes_draw_the_same(void);

/* That many processes, some at a time, encrypt a message of 1000 bytes each, and so does this one. */
void a_crowd_counts(size_t processes, size_t at_a_time);

/* Calls in wrong orders, with wrong lengths and wrong parameters, of every cipher of ours. */
void wrong_calls_are_refused(size_t rounds);

#endif
