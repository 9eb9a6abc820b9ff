/* Processes that are forked after the provider was loaded, and then may do next to nothing. */
#include "host.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MESSAGE = 1000, ROUNDS = 2, STRIDE = 64 };

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (unsigned)offsetof(struct seccomp_data, field))
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, what)
#define ALLOW(number) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), ANSWER(SECCOMP_RET_ALLOW)

/* From here on the kernel ends this process for any call but these. */
static void forbid_all_but_memory(void)
{
    struct sock_filter steps[] = {
        LOAD(nr),
        ALLOW(__NR_read),
        ALLOW(__NR_write),
        ALLOW(__NR_futex),
        ALLOW(__NR_brk),
        ALLOW(__NR_munmap),
        ALLOW(__NR_mremap),
        ALLOW(__NR_madvise),
        ALLOW(__NR_exit_group),
        /* No file in memory. */
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 0, 3),
        LOAD(args[3]),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 1),
        ANSWER(SECCOMP_RET_ALLOW),
        ANSWER(SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = { .len = sizeof steps / sizeof *steps, .filter = steps };
    REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* All that the environment has. */
static size_t environment(void)
{
    size_t sum = 0;
    for (char **entry = environ; *entry != NULL; entry++)
        for (const char *byte = *entry; *byte != '\0'; byte++)
            sum = sum * 31 + (unsigned char)*byte;
    return sum;
}

static void works(const void *argument)
{
    int paper_mode = *(const int *)argument;
    size_t before = environment();
    forbid_all_but_memory();
    multiblock_is_opened_by_the_default_provider(paper_mode, STRIDE);
    wrong_calls_are_refused(ROUNDS);
    REQUIRE(environment() == before);
}

void every_cipher_works_in_a_sandbox(int paper_mode)
{
    /* The child's child is a process that was never there at load either. */
    apart(works, &paper_mode);
    apart(works, &paper_mode);
    works(&paper_mode);
    static const char said[] = "as it should be\n";
    REQUIRE(write(1, said, sizeof said - 1) == sizeof said - 1);
    _exit(0);
}

/* The control: a call that the filter forbids ends the process. */
void a_sandbox_forbids(void)
{
    forbid_all_but_memory();
    (void)getppid();
    _exit(0);
}

enum { PROCESSES = 4, IV = 12 };

/* The IV that GCM draws for a connection. */
static void draws(unsigned char *iv)
{
    static const unsigned char key[32];
    unsigned char fixed[4] = { 0 };
    EVP_CIPHER_CTX *context = keyless("AES-256-GCM", "wattlock", 1);
    REQUIRE(EVP_EncryptInit_ex2(context, NULL, key, NULL, NULL) == 1);
    REQUIRE(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IV_FIXED, 4, fixed) == 1);
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_octet_string(OSSL_CIPHER_PARAM_IV, iv, IV),
        OSSL_PARAM_construct_end(),
    };
    REQUIRE(EVP_CIPHER_CTX_get_params(context, params) == 1);
    EVP_CIPHER_CTX_free(context);
}

void no_two_processes_draw_the_same(void)
{
    doing("random numbers of processes");
    unsigned char(*ivs)[IV] = mmap(NULL, PROCESSES * IV, PROT_READ | PROT_WRITE,
                                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(ivs != MAP_FAILED);
    for (int index = 1; index < PROCESSES; index++) {
        /* By the C library, and by the system call that it knows nothing of. */
        pid_t child = index == 1 ? fork() : (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        REQUIRE(child >= 0);
        if (child == 0) {
            draws(ivs[index]);
            _exit(0);
        }
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && status == 0);
    }
    draws(ivs[0]);
    for (int one = 0; one < PROCESSES; one++)
        for (int other = 0; other < one; other++)
            REQUIRE(memcmp(ivs[one], ivs[other], IV) != 0);
}

static void one_message(void)
{
    static const unsigned char key[32], iv[16];
    unsigned char bytes[MESSAGE] = { 0 };
    int written = 0;
    EVP_CIPHER_CTX *context = keyless("AES-256-CTR", "wattlock", 1);
    REQUIRE(EVP_EncryptInit_ex2(context, NULL, key, iv, NULL) == 1);
    REQUIRE(EVP_CipherUpdate(context, bytes, &written, bytes, MESSAGE) == 1);
    EVP_CIPHER_CTX_free(context);
}

void a_crowd_counts(size_t processes, size_t at_a_time)
{
    doing("a crowd");
    for (size_t begun = 0; begun < processes; begun += at_a_time) {
        int gate[2];
        REQUIRE(pipe(gate) == 0);
        for (size_t index = 0; index < at_a_time; index++) {
            pid_t child = fork();
            REQUIRE(child >= 0);
            if (child == 0) {
                /* All are there before any of them works, and one ends without a word. */
                char open;
                close(gate[1]);
                REQUIRE(read(gate[0], &open, 1) == 0);
                one_message();
                _exit(0);
            }
        }
        close(gate[0]);
        close(gate[1]);
        for (size_t index = 0; index < at_a_time; index++) {
            int status = 0;
            REQUIRE(wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        }
    }
    one_message();
}
