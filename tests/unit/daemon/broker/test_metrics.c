/* Metrics: what is told twice counts once, whatever becomes of a job its state is counted once, and
 * users that are idle make room for others. */
#include "daemon/broker/jobs/job.h"
#include "daemon/broker/numbers/metrics.h"
#include "proto/wire/pack.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>

static struct jobs *jobs;
static struct metrics metrics;

static void set_up(void)
{
    cr_assert(eq(int, jobs_new(&jobs), 0));
    metrics_init(&metrics);
}

static void tear_down(void)
{
    jobs = jobs_free(jobs);
    metrics_deinit(&metrics);
}

static struct job *submit(uid_t uid, uint64_t now_ns)
{
    struct job *job = NULL;
    cr_assert(eq(int, jobs_add(jobs, uid, &job), 0));
    job->submitted_ns = now_ns;
    metrics_submitted(&metrics, job);
    return job;
}

static void start(struct job *job, uint64_t now_ns)
{
    job_set_state(job, JOB_RUNNING);
    job->started_ns = now_ns;
    metrics_started(&metrics, job);
}

static void end(struct job *job, enum gad_status status, uint64_t now_ns)
{
    job->failed_as = status;
    job_set_state(job, !status ? JOB_DONE : status == GAD_CANCELLED ? JOB_CANCELLED : JOB_FAILED);
    metrics_ended(&metrics, job, now_ns);
    job_keep(jobs, job, now_ns);
}

/* As the worker tells it: so many bytes read from files and written to regions, so much time. */
static void tell(struct job *job, uint64_t n_read, uint64_t n_written, double kernel_s)
{
    const uint64_t read[TRAFFIC_N_PATHS] = {[TRAFFIC_FILE] = n_read};
    const uint64_t written[TRAFFIC_N_PATHS] = {[TRAFFIC_REGION] = n_written};
    struct message_writer w;
    msgpack_unpacked unpacked;
    message_writer_init(&w);
    msgpack_pack_map(&w.packer, 3);
    pack_str(&w.packer, "bytes");
    traffic_pack_bytes(&w.packer, read, written);
    pack_key_u64(&w.packer, "around_cache_bytes", n_written / 2);
    pack_str(&w.packer, "seconds");
    msgpack_pack_map(&w.packer, 1);
    pack_key_f64(&w.packer, "kernel", kernel_s);
    msgpack_unpacked_init(&unpacked);
    cr_assert(eq(int, msgpack_unpack_next(&unpacked, w.buffer.data, w.buffer.size, NULL),
                 MSGPACK_UNPACK_SUCCESS));
    metrics_moved(&metrics, job, &unpacked.data);
    msgpack_unpacked_destroy(&unpacked);
    message_writer_deinit(&w);
}

static struct metrics_user *first_user(void)
{
    return list_entry(metrics.users.next, struct metrics_user, link);
}

TestSuite(metrics, .init = set_up, .fini = tear_down);

Test(metrics, tidings_count_by_what_is_new_in_them)
{
    struct job *job = submit(7, 100);
    start(job, 100);
    tell(job, 1000, 10, 1.5);
    tell(job, 1000, 10, 1.5);
    tell(job, 4000, 40, 2);
    cr_assert(eq(u64, metrics.traffic.read_bytes[TRAFFIC_FILE], 4000));
    cr_assert(eq(u64, metrics.traffic.read_bytes[TRAFFIC_REGION], 0));
    cr_assert(eq(u64, metrics.traffic.write_bytes[TRAFFIC_REGION], 40));
    cr_assert(eq(u64, metrics.traffic.around_cache_bytes, 20));
    cr_assert(eq(u64, metrics.traffic.stage_ns[TRAFFIC_KERNEL], 2000000000));
    cr_assert(eq(u64, first_user()->read_bytes, 4000));
    cr_assert(eq(u64, first_user()->write_bytes, 40));
    end(job, GAD_OK, 200);
}

Test(metrics, a_tiding_that_is_less_takes_nothing_back)
{
    struct job *job = submit(7, 100);
    start(job, 100);
    tell(job, 4000, 40, 2);
    tell(job, 3, 3, -5);
    cr_assert(eq(u64, metrics.traffic.read_bytes[TRAFFIC_FILE], 4000));
    cr_assert(eq(u64, metrics.traffic.stage_ns[TRAFFIC_KERNEL], 2000000000));
    end(job, GAD_OK, 200);
}

Test(metrics, what_no_job_can_move_is_not_believed)
{
    struct job *job = submit(7, 100);
    start(job, 100);
    tell(job, 4000, 40, 2);
    tell(job, UINT64_MAX, UINT64_MAX, 1e300);
    cr_assert(eq(u64, metrics.traffic.read_bytes[TRAFFIC_FILE], 4000));
    cr_assert(eq(u64, metrics.traffic.write_bytes[TRAFFIC_REGION], 40));
    cr_assert(eq(u64, metrics.traffic.around_cache_bytes, 20));
    cr_assert(eq(u64, metrics.traffic.stage_ns[TRAFFIC_KERNEL], 2000000000));
    cr_assert(eq(u64, first_user()->read_bytes, 4000));
    end(job, GAD_OK, 200);
}

Test(metrics, a_second_attempt_counts_beside_the_first)
{
    struct job *job = submit(7, 100);
    start(job, 150);
    tell(job, 1000, 0, 0);
    job_set_state(job, JOB_QUEUED);
    metrics_requeued(&metrics, job, 200);
    start(job, 260);
    tell(job, 1500, 0, 0);
    end(job, GAD_OK, 300);
    cr_assert(eq(u64, metrics.traffic.read_bytes[TRAFFIC_FILE], 2500));
    cr_assert(eq(u64, metrics.queue_ns, 50 + 60));
    cr_assert(eq(u64, metrics.n_requeued, 1));
    cr_assert(eq(u64, metrics.n_submitted, 1));
    cr_assert(eq(u64, metrics.n_ended[GAD_OK], 1));
}

Test(metrics, waits_grow_while_jobs_wait_and_stay_when_they_end)
{
    struct job *a = submit(7, 1000), *b = submit(7, 1500);
    cr_assert(eq(u64, metrics_waiting_ns(&metrics.jobs, 2000), 1000 + 500));
    start(a, 2000);
    cr_assert(eq(u64, metrics.queue_ns, 1000));
    cr_assert(eq(u64, metrics_waiting_ns(&metrics.jobs, 2100), 600));
    end(b, GAD_CANCELLED, 2200); /* it never ran */
    end(a, GAD_OK, 2300);
    cr_assert(eq(u64, metrics.queue_ns, 1000 + 700));
    cr_assert(eq(u64, metrics_waiting_ns(&metrics.jobs, 9999), 0));
    cr_assert(eq(u64, first_user()->waited_ns, 1700));
}

Test(metrics, states_are_counted_whatever_becomes_of_a_job)
{
    struct job *done = submit(7, 1), *settled = submit(7, 1), *failed = submit(8, 1);
    cr_assert(eq(u64, metrics.jobs.n[METRICS_QUEUED], 3));
    start(done, 2);
    start(settled, 2);
    cr_assert(eq(u64, metrics.jobs.n[METRICS_RUNNING], 2));
    job_set_state(settled, JOB_SETTLING);
    metrics_settling(&metrics, settled);
    cr_assert(eq(u64, metrics.jobs.n[METRICS_SETTLING], 1));
    cr_assert(eq(u64, metrics_n_live(&metrics.jobs), 3));
    cr_assert(eq(u64, metrics_n_live(&first_user()->jobs), 1)); /* 8 came last */
    end(done, GAD_OK, 3);
    end(settled, GAD_NO_SPACE, 3);
    end(failed, GAD_SHUTTING_DOWN, 3);
    cr_assert(eq(u64, metrics_n_live(&metrics.jobs), 0));
    cr_assert(eq(u64, metrics_n_live(&first_user()->jobs), 0));
    cr_assert(eq(u64, metrics.n_ended[GAD_NO_SPACE], 1));
    cr_assert(eq(u64, metrics.n_ended[GAD_SHUTTING_DOWN], 1));
}

Test(metrics, idle_users_make_room_and_busy_ones_stay)
{
    struct job *job = submit(7, 1);
    for (uid_t uid = 1000; uid < 1000 + METRICS_MAX_USERS + 10; uid++)
        metrics_session(&metrics, uid);
    cr_assert(eq(uint, metrics.n_users, METRICS_MAX_USERS));
    cr_assert(eq(uint, list_entry(metrics.users.prev, struct metrics_user, link)->uid, 7));
    start(job, 2);
    tell(job, 5, 0, 0);
    cr_assert(eq(u64, job->metrics_user->read_bytes, 5));
    end(job, GAD_OK, 3);
    metrics_session(&metrics, 1);
    cr_assert(ne(uint, list_entry(metrics.users.prev, struct metrics_user, link)->uid, 7));
    cr_assert(eq(u64, metrics.traffic.read_bytes[TRAFFIC_FILE], 5)); /* sums stay */
}

Test(metrics, a_refusal_that_is_no_status_is_our_own_fault)
{
    metrics_refused(&metrics, GAD_BAD_SHAPE);
    metrics_refused(&metrics, GAD_STATUS_COUNT);
    metrics_refused(&metrics, -12);
    cr_assert(eq(u64, metrics.n_refusals[GAD_BAD_SHAPE], 1));
    cr_assert(eq(u64, metrics.n_refusals[GAD_INTERNAL], 2));
}

static uint64_t wait_of(enum traffic_wait wait)
{
    return metrics.traffic.wait_ns[wait];
}

Test(metrics, waits_are_counted_by_their_reason_and_once)
{
    struct job *job = submit(7, 1000);
    cr_assert(eq(u64, job_wait_ns(job, TRAFFIC_TURN, 1500), 500));
    job->item.lacked_room = true;
    cr_assert(eq(u64, job_wait_ns(job, TRAFFIC_ROOM, 1500), 500));
    cr_assert(eq(u64, job_wait_ns(job, TRAFFIC_TURN, 1500), 0));
    start(job, 3000);
    cr_assert(eq(u64, wait_of(TRAFFIC_ROOM), 2000));
    cr_assert(eq(int, job->item.lacked_room, false));
    struct message_writer w;
    msgpack_unpacked unpacked;
    message_writer_init(&w);
    msgpack_pack_map(&w.packer, 2);
    pack_str(&w.packer, "waits");
    msgpack_pack_map(&w.packer, 3);
    pack_key_f64(&w.packer, "input", 2.5);
    pack_key_f64(&w.packer, "turn", 1e12); /* no time */
    pack_key_str(&w.packer, "room", "none");
    pack_str(&w.packer, "seconds");
    msgpack_pack_map(&w.packer, 4);
    pack_key_f64(&w.packer, "source", 1);
    pack_key_f64(&w.packer, "kernel", 2);
    pack_key_f64(&w.packer, "to_device", 3);
    pack_key_f64(&w.packer, "sink", 0.5);
    msgpack_unpacked_init(&unpacked);
    cr_assert(eq(int, msgpack_unpack_next(&unpacked, w.buffer.data, w.buffer.size, NULL),
                 MSGPACK_UNPACK_SUCCESS));
    for (unsigned i = 0; i < 3; i++)
        metrics_moved(&metrics, job, &unpacked.data);
    msgpack_unpacked_destroy(&unpacked);
    message_writer_deinit(&w);
    cr_assert(eq(u64, wait_of(TRAFFIC_INPUT), 2500000000));
    cr_assert(eq(u64, wait_of(TRAFFIC_TURN), 0));
    cr_assert(eq(u64, first_user()->wait_ns[TRAFFIC_INPUT], 2500000000));
    cr_assert(eq(u64, first_user()->wait_ns[TRAFFIC_ROOM], 2000));
    cr_assert(eq(u64, first_user()->work_ns, 4500000000)); /* copies go on beside kernels */
    cr_assert(eq(u64, job_wait_ns(job, TRAFFIC_INPUT, 9000), 2500000000));
    cr_assert(eq(u64, job_wait_ns(job, TRAFFIC_ROOM, 9000), 2000));
    end(job, GAD_OK, 9000);
}
