/* Threads that take the parts of a job from a counter. Whoever calls takes parts too, so that a job is
   finished even where no other thread gets a processor. One job at a time has the threads; others
   that come meanwhile run alone. */
#include <stdint.h>
typedef void (*wengert_work)(void* data, int64_t part);

#if (defined(__unix__) || defined(__APPLE__)) && !defined(__STDC_NO_ATOMICS__)
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#define WENGERT_MOST_THREADS 64
#define WENGERT_TURNS 3000 /* of waiting before a thread sleeps: some microseconds */

static struct {
    atomic_flag taken;           /* by the call that has the threads */
    atomic_int number;           /* of the job; odd while one is open */
    atomic_int busy, asleep;
    _Atomic int64_t next;
    wengert_work work;
    void* data;
    int64_t parts;
    int helpers;                 /* that may take part */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    int threads;                 /* beside the one that calls */
    int registered;
} wengert_pool = {.taken = ATOMIC_FLAG_INIT, .lock = PTHREAD_MUTEX_INITIALIZER,
                  .wake = PTHREAD_COND_INITIALIZER};

static inline void wengert_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void wengert_take_parts(void) {
    wengert_work work = wengert_pool.work;
    void* data = wengert_pool.data;
    int64_t parts = wengert_pool.parts;
    for (;;) {
        int64_t part = atomic_fetch_add(&wengert_pool.next, 1);
        if (part >= parts) return;
        work(data, part);
    }
}

static void* wengert_worker(void* unused) {
    int seen = 0;
    for (;;) {
        int number, turns = 0;
        while ((number = atomic_load(&wengert_pool.number)) == seen) {
            if (++turns < WENGERT_TURNS) { wengert_pause(); continue; }
            pthread_mutex_lock(&wengert_pool.lock);
            atomic_fetch_add(&wengert_pool.asleep, 1);
            while (atomic_load(&wengert_pool.number) == seen)
                pthread_cond_wait(&wengert_pool.wake, &wengert_pool.lock);
            atomic_fetch_sub(&wengert_pool.asleep, 1);
            pthread_mutex_unlock(&wengert_pool.lock);
            turns = 0;
        }
        seen = number;
        if (number & 1) {
            int others = atomic_fetch_add(&wengert_pool.busy, 1);
            /* A job that was closed meanwhile is not touched: whoever closed it waits for `busy`. */
            if (atomic_load(&wengert_pool.number) == number && others < wengert_pool.helpers) wengert_take_parts();
            atomic_fetch_sub(&wengert_pool.busy, 1);
        }
    }
    return 0;
}

static void wengert_forget_threads(void) { /* in a child, which has none of them */
    wengert_pool.threads = 0;
    atomic_flag_clear(&wengert_pool.taken);
    atomic_store(&wengert_pool.number, 0);
    atomic_store(&wengert_pool.busy, 0);
    atomic_store(&wengert_pool.asleep, 0);
    pthread_mutex_init(&wengert_pool.lock, 0);
    pthread_cond_init(&wengert_pool.wake, 0);
}

static void wengert_start_threads(int wanted) {
    if (wanted > WENGERT_MOST_THREADS) wanted = WENGERT_MOST_THREADS;
    if (!wengert_pool.registered) {
        wengert_pool.registered = 1;
        pthread_atfork(0, 0, wengert_forget_threads);
    }
    while (wengert_pool.threads < wanted) {
        pthread_t thread;
        if (pthread_create(&thread, 0, wengert_worker, 0)) return;
        pthread_detach(thread);
        wengert_pool.threads++;
    }
}

static void wengert_split(wengert_work work, void* data, int64_t parts, int threads) {
    if (threads < 2 || parts < 2 || atomic_flag_test_and_set(&wengert_pool.taken)) {
        for (int64_t part = 0; part < parts; part++) work(data, part);
        return;
    }
    wengert_start_threads(threads < parts ? threads - 1 : (int)parts - 1);
    wengert_pool.work = work;
    wengert_pool.data = data;
    wengert_pool.parts = parts;
    wengert_pool.helpers = threads - 1;
    atomic_store(&wengert_pool.next, 0);
    atomic_fetch_add(&wengert_pool.number, 1);
    if (atomic_load(&wengert_pool.asleep)) {
        pthread_mutex_lock(&wengert_pool.lock);
        pthread_cond_broadcast(&wengert_pool.wake);
        pthread_mutex_unlock(&wengert_pool.lock);
    }
    wengert_take_parts();
    atomic_fetch_add(&wengert_pool.number, 1);
    for (int turns = 0; atomic_load(&wengert_pool.busy);) {
        if (++turns < WENGERT_TURNS) wengert_pause();
        else sched_yield();
    }
    atomic_flag_clear(&wengert_pool.taken);
}
#else
static void wengert_split(wengert_work work, void* data, int64_t parts, int threads) {
    for (int64_t part = 0; part < parts; part++) work(data, part);
}
#endif
