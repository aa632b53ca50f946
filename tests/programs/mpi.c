/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * An MPI program: a ping-pong of messages up to 256 KB between ranks 0 and 1, every byte compared, then an allreduce and an
 * alltoall of all ranks. Rank 0 prints "ok".
 */

#define BYTES_MAX (256 << 10)
#define ROUNDS	  20
#define RANKS_MAX 64

static unsigned char out[BYTES_MAX], in[BYTES_MAX];

static void fail(const char *what)
{
	printf("wrong: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static void ping_pong(int rank, int bytes)
{
	for (int i = 0; i < ROUNDS; i++) {
		memset(out, i + bytes % 251, (size_t)bytes);
		memset(in, 0xee, (size_t)bytes);
		if (rank == 0)
			MPI_Send(out, bytes, MPI_BYTE, 1, i, MPI_COMM_WORLD);
		MPI_Recv(in, bytes, MPI_BYTE, 1 - rank, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (rank == 1)
			MPI_Send(in, bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD);
		if (memcmp(in, out, (size_t)bytes))
			fail("ping-pong");
	}
}

static void collectives(int rank, int size)
{
	int to[RANKS_MAX], from[RANKS_MAX];
	double mine = rank + 1, sum = 0;

	for (int i = 0; i < ROUNDS; i++) {
		MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
		if (sum != size * (size + 1) / 2.0)
			fail("allreduce");
		for (int r = 0; r < size; r++)
			to[r] = rank * 1000 + r + i;
		MPI_Alltoall(to, 1, MPI_INT, from, 1, MPI_INT, MPI_COMM_WORLD);
		for (int r = 0; r < size; r++)
			if (from[r] != r * 1000 + rank + i)
				fail("alltoall");
	}
}

int main(int argc, char **argv)
{
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (size > RANKS_MAX)
		fail("too many ranks");
	for (int bytes = 8; rank < 2 && bytes <= BYTES_MAX; bytes *= 2)
		ping_pong(rank, bytes);
	collectives(rank, size);
	if (!rank)
		printf("ok, %d ranks\n", size);
	MPI_Finalize();
	return 0;
}
