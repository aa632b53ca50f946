/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * mpi: an MPI program. Rank 0 exchanges messages up to 256 KB with each other rank; then all ranks do allreduce and
 * alltoall. Every byte that is received is compared. Rank 0 prints "ok".
 *
 * mpi one_sided: each rank puts a block into the memory of each other one and gets it back, and all add to a counter of rank 0, where each must find
 * other values. Every byte is compared. Rank 0 prints "ok".
 *
 * mpi speed: prints the time of a ping-pong of 8 bytes, half a round trip; the bandwidth of 64 KB messages, 64 at a time, as osu_bw sends them; and
 * the time of an allreduce of 8 bytes.
 */

#define BYTES_MAX    (256 << 10)
#define BLOCK	     4096 /* of an alltoall, for each rank */
#define ROUNDS	     10
#define RANKS_MAX    64
#define SPEED_BYTES  65536
#define WINDOW	     64
#define SPEED_SPAN_S 1.0

static unsigned char out[BYTES_MAX], in[BYTES_MAX];

static void fail(const char *what)
{
	printf("wrong: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Different at every place, so that bytes that move are noticed. */
static void fill(unsigned char *to, int bytes, unsigned seed)
{
	for (int i = 0; i < bytes; i++)
		to[i] = (unsigned char)((unsigned)i * 7 + ((unsigned)i >> 8) * 13 + seed * 31);
}

static void ping_pong(int rank, int peer, int bytes)
{
	for (int i = 0; i < ROUNDS; i++) {
		fill(out, bytes, (unsigned)(i + bytes));
		memset(in, 0xee, (size_t)bytes);
		if (rank == 0)
			MPI_Send(out, bytes, MPI_BYTE, peer, i, MPI_COMM_WORLD);
		MPI_Recv(in, bytes, MPI_BYTE, peer, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank != 0)
			MPI_Send(in, bytes, MPI_BYTE, peer, i, MPI_COMM_WORLD);
		if (memcmp(in, out, (size_t)bytes))
			fail("ping-pong");
	}
}

static void ping_pongs(int rank, int size)
{
	for (int peer = 1; peer < size; peer++)
		for (int bytes = 8; bytes <= BYTES_MAX; bytes *= 2)
			if (rank == 0 || rank == peer)
				ping_pong(rank, rank == 0 ? peer : 0, bytes);
}

static void allreduce(int rank, int size)
{
	static double mine[BLOCK], sum[BLOCK];

	for (int i = 0; i < ROUNDS; i++) {
		for (int k = 0; k < BLOCK; k++)
			mine[k] = rank + 1 + k + i;
		MPI_Allreduce(mine, sum, BLOCK, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		for (int k = 0; k < BLOCK; k++)
			if (sum[k] != size * (size + 1) / 2.0 + (double)size * (k + i))
				fail("allreduce");
	}
}

static void alltoall(int rank, int size)
{
	static unsigned char expected[BLOCK];

	for (int i = 0; i < ROUNDS; i++) {
		for (int r = 0; r < size; r++)
			fill(out + r * BLOCK, BLOCK, (unsigned)(rank * RANKS_MAX + r + i));
		memset(in, 0xee, (size_t)size * BLOCK);
		MPI_Alltoall(out, BLOCK, MPI_BYTE, in, BLOCK, MPI_BYTE, MPI_COMM_WORLD);
		for (int r = 0; r < size; r++) {
			fill(expected, BLOCK, (unsigned)(r * RANKS_MAX + rank + i));
			if (memcmp(in + r * BLOCK, expected, BLOCK))
				fail("alltoall");
		}
	}
}

/* ---- one-sided ---- */

#define ADDS 200

static void put_and_get(int rank, int size, MPI_Win win, const unsigned char *mine)
{
	static unsigned char expected[BLOCK];

	for (int r = 0; r < size; r++) {
		fill(out + r * BLOCK, BLOCK, (unsigned)(rank * RANKS_MAX + r));
		MPI_Put(out + r * BLOCK, BLOCK, MPI_BYTE, r, rank * BLOCK, BLOCK, MPI_BYTE, win);
	}
	MPI_Win_flush_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_sync(win);
	memset(in, 0xee, (size_t)size * BLOCK);
	for (int r = 0; r < size; r++) {
		fill(expected, BLOCK, (unsigned)(r * RANKS_MAX + rank));
		if (memcmp(mine + r * BLOCK, expected, BLOCK))
			fail("put");
		MPI_Get(in + r * BLOCK, BLOCK, MPI_BYTE, r, rank * BLOCK, BLOCK, MPI_BYTE, win);
	}
	MPI_Win_flush_all(win);
	if (memcmp(in, out, (size_t)size * BLOCK))
		fail("get");
}

/* No value of the counter is found by two ranks, and none is left out. */
static void add(int rank, int size, MPI_Win win)
{
	static int mine[RANKS_MAX * ADDS], all[RANKS_MAX * ADDS];
	long one = 1, found;

	for (int i = 0; i < ADDS; i++) {
		MPI_Fetch_and_op(&one, &found, MPI_LONG, 0, 0, MPI_SUM, win);
		MPI_Win_flush(0, win);
		if (found < 0 || found >= (long)size * ADDS)
			fail("counter");
		mine[found]++;
	}
	MPI_Allreduce(mine, all, size * ADDS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	for (int i = 0; rank == 0 && i < size * ADDS; i++)
		if (all[i] != 1)
			fail("a value of the counter");
}

static void one_sided(int rank, int size)
{
	unsigned char *blocks;
	long *counter;
	MPI_Win of_blocks, of_counter;

	MPI_Win_allocate((MPI_Aint)size * BLOCK, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &blocks,
			 &of_blocks);
	MPI_Win_allocate(sizeof(*counter), sizeof(*counter), MPI_INFO_NULL, MPI_COMM_WORLD,
			 &counter, &of_counter);
	MPI_Win_lock_all(0, of_blocks);
	MPI_Win_lock_all(0, of_counter);
	*counter = 0;
	MPI_Win_sync(of_counter);
	MPI_Barrier(MPI_COMM_WORLD);
	put_and_get(rank, size, of_blocks, blocks);
	add(rank, size, of_counter);
	MPI_Win_unlock_all(of_counter);
	MPI_Win_unlock_all(of_blocks);
	MPI_Win_free(&of_counter);
	MPI_Win_free(&of_blocks);
}

/* ---- speed ---- */

static void round_trip(int rank)
{
	if (rank == 0)
		MPI_Send(out, 8, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
	if (rank < 2)
		MPI_Recv(in, 8, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank == 1)
		MPI_Send(out, 8, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
}

static void window(int rank)
{
	MPI_Request request[WINDOW];

	for (int i = 0; rank < 2 && i < WINDOW; i++) {
		if (rank == 0)
			MPI_Isend(out, SPEED_BYTES, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request[i]);
		else
			MPI_Irecv(in, SPEED_BYTES, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request[i]);
	}
	if (rank < 2)
		MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
	round_trip(rank);
}

static void reduce(int rank)
{
	double mine = rank, sum;

	MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

/* Seconds of one step, of as many as take about a second. All ranks take the same number. */
static double time_of(void (*step)(int rank), int rank)
{
	double span_s = 0;
	int steps = 8;

	for (bool long_enough = false; !long_enough; long_enough = span_s >= SPEED_SPAN_S / 2) {
		double start_s;

		if (span_s > 0)
			steps = (int)(steps *
				      (SPEED_SPAN_S / span_s > 16 ? 16 : SPEED_SPAN_S / span_s)) +
				1;
		MPI_Barrier(MPI_COMM_WORLD);
		start_s = MPI_Wtime();
		for (int i = 0; i < steps; i++)
			step(rank);
		span_s = MPI_Wtime() - start_s;
		MPI_Bcast(&span_s, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	}
	return span_s / steps;
}

static void print_speed(int rank)
{
	double ping_s = time_of(round_trip, rank), window_s = time_of(window, rank),
	       reduce_s = time_of(reduce, rank);

	if (!rank)
		printf("latency_us %.3f bandwidth_gbps %.3f allreduce_us %.3f\n", ping_s / 2 * 1e6,
		       8e-9 * WINDOW * SPEED_BYTES / window_s, reduce_s * 1e6);
}

int main(int argc, char **argv)
{
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size < 2 || size > RANKS_MAX)
		fail("the number of ranks");
	if (argc > 1 && !strcmp(argv[1], "speed")) {
		print_speed(rank);
	} else if (argc > 1 && !strcmp(argv[1], "one_sided")) {
		one_sided(rank, size);
		if (!rank)
			printf("ok, %d ranks\n", size);
	} else {
		ping_pongs(rank, size);
		allreduce(rank, size);
		alltoall(rank, size);
		if (!rank)
			printf("ok, %d ranks\n", size);
	}
	MPI_Finalize();
	return 0;
}
