/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libibumad as a program sees it that was compiled with Debian's headers: the functions that need no channel adapter.
 * UMAD_LIBRARY is ours, UMAD_SYSTEM_LIBRARY the name of Debian's.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/socket.h>
#include <unistd.h>

#include <criterion/criterion.h>
#include <infiniband/umad.h>
#include <infiniband/umad_str.h>

#include "umad/pass.h"

#define SYSTEM_LIBRARY "libibumad.so.3"

/* Every name that the library at `path` prints, one after the other. */
static char *print_names(const char *path, size_t *bytes)
{
	const char *(*class_str)(uint8_t), *(*method_str)(uint8_t, uint8_t);
	const char *(*attribute_str)(uint8_t, __be16), *(*status_str)(__be16), *(*sa_str)(__be16);
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	char *text = NULL;
	FILE *f = open_memstream(&text, bytes);

	cr_assert_not_null(lib, "%s", dlerror());
	*(void **)&class_str = dlsym(lib, "umad_class_str");
	*(void **)&method_str = dlsym(lib, "umad_method_str");
	*(void **)&attribute_str = dlsym(lib, "umad_attribute_str");
	*(void **)&status_str = dlsym(lib, "umad_common_mad_status_str");
	*(void **)&sa_str = dlsym(lib, "umad_sa_mad_status_str");
	for (unsigned c = 0; c < 256; c++) {
		fprintf(f, "class %u %s\n", c, class_str((uint8_t)c));
		for (unsigned m = 0; m < 256; m++)
			fprintf(f, "%u method %u %s\n", c, m, method_str((uint8_t)c, (uint8_t)m));
		for (unsigned a = 0; a < 0x140; a++)
			fprintf(f, "%u attribute %u %s\n", c, a,
				attribute_str((uint8_t)c, htons((uint16_t)a)));
	}
	for (unsigned s = 0; s < 0x10000; s++)
		fprintf(f, "status %u %s, %s\n", s, status_str(htons((uint16_t)s)),
			sa_str(htons((uint16_t)s)));
	fclose(f);
	dlclose(lib);
	return text;
}

Test(umad_lib, names_are_those_of_rdma_core)
{
	size_t our_bytes, their_bytes;
	char *ours = print_names(getenv("UMAD_LIBRARY"), &our_bytes);
	char *theirs = print_names(SYSTEM_LIBRARY, &their_bytes);
	char *a = ours, *b = theirs;

	cr_assert_gt(their_bytes, 1000000);
	for (;;) {
		char *end_a = strchr(a, '\n'), *end_b = strchr(b, '\n');

		if (end_a == NULL || end_b == NULL)
			break;
		*end_a = *end_b = '\0';
		cr_assert_str_eq(a, b);
		a = end_a + 1;
		b = end_b + 1;
	}
	cr_assert_eq(our_bytes, their_bytes);
	free(ours);
	free(theirs);
}

Test(umad_lib, fields_are_where_the_header_has_them)
{
	struct ib_user_mad *mad = calloc(1, sizeof(*mad) + 256);
	struct ib_mad_addr grh = {.flow_label = 0x12345, .hop_limit = 7, .traffic_class = 9};

	cr_assert_eq(umad_size(), 64);
	cr_assert_eq(umad_get_mad(mad), mad->data);
	cr_assert_eq(umad_get_mad_addr(mad), &mad->addr);
	umad_set_addr(mad, 0x1234, 1, 3, (int)0x80010000u);
	cr_assert_eq(mad->addr.lid, htons(0x1234));
	cr_assert_eq(mad->addr.qpn, htonl(1));
	cr_assert_eq(mad->addr.qkey, htonl(0x80010000u));
	cr_assert_eq(mad->addr.sl, 3);
	umad_set_addr_net(mad, htons(5), htonl(6), 7, htonl(8));
	cr_assert_eq(mad->addr.lid, htons(5));
	cr_assert_eq(mad->addr.qpn, htonl(6));
	cr_assert_eq(mad->addr.qkey, htonl(8));
	memset(grh.gid, 0xfe, sizeof(grh.gid));
	umad_set_grh(mad, &grh);
	cr_assert_eq(mad->addr.grh_present, 1);
	cr_assert_eq(mad->addr.flow_label, htonl(0x12345));
	cr_assert_eq(mad->addr.hop_limit, 7);
	cr_assert_eq(mad->addr.traffic_class, 9);
	cr_assert_arr_eq(mad->addr.gid, grh.gid, 16);
	umad_set_grh(mad, NULL);
	cr_assert_eq(mad->addr.grh_present, 0);
	umad_set_pkey(mad, 11);
	cr_assert_eq(umad_get_pkey(mad), 11);
	cr_assert_eq(mad->addr.pkey_index, 11);
	mad->status = 110;
	cr_assert_eq(umad_status(mad), 110);
	free(mad);
}

Test(umad_lib, without_an_adapter_every_call_says_so)
{
	char path[64], name[2][UMAD_CA_NAME_LEN];
	umad_port_t port;
	umad_ca_t ca;

	setenv("UROCE_UMAD_DIR", "/nonexistent", 1);
	cr_assert_eq(umad_init(), 0);
	cr_assert_eq(umad_get_cas_names(name, 2), 0);
	cr_assert_null(umad_get_ca_device_list());
	cr_assert_eq(errno, 0);
	cr_assert_eq(umad_get_ca(NULL, &ca), -ENODEV);
	cr_assert_eq(umad_get_port("uroce0", 1, &port), -ENODEV);
	cr_assert_eq(umad_get_issm_path(NULL, 0, path, sizeof(path)), -ENODEV);
	cr_assert_eq(umad_open_port(NULL, 0), -ENODEV);
	cr_assert_eq(umad_get_ca_portguids(NULL, NULL, 0), -ENODEV);
	cr_assert_eq(umad_done(), 0);
}

Test(umad_lib, a_device_list_is_sorted_by_name)
{
	struct umad_device_node c = {.ca_name = "uroce2"}, b = {.next = &c, .ca_name = "uroce0"};
	struct umad_device_node a = {.next = &b, .ca_name = "uroce1"}, *head = &a;

	cr_assert_eq(umad_sort_ca_device_list(&head, 2), EINVAL);
	cr_assert_eq(umad_sort_ca_device_list(&head, 0), 0);
	cr_assert_eq(head, &b);
	cr_assert_eq(head->next, &a);
	cr_assert_eq(head->next->next, &c);
	cr_assert_null(head->next->next->next);
}

Test(umad_lib, arguments_that_cannot_be_are_refused)
{
	struct umad_reg_attr attr = {.mgmt_class = 0x32, .oui = 0};
	uint8_t buffer[64 + 256] = {0}, oui[3] = {0, 0x14, 5};
	uint32_t agent;
	int length = 256;

	cr_assert_eq(umad_recv(-1, NULL, &length, 0), -EINVAL);
	cr_assert_eq(umad_register_oui(-1, 0x29, 0, oui, NULL), -EINVAL);
	cr_assert_eq(umad_register2(-1, &attr, &agent), EINVAL);
	cr_assert_eq(umad_register2(-1, NULL, &agent), EINVAL);
	attr = (struct umad_reg_attr){.mgmt_class = 4, .flags = 0x10};
	cr_assert_eq(umad_register2(-1, &attr, &agent), EINVAL);
	cr_assert_eq(attr.flags, UMAD_USER_RMPP);
	cr_assert_eq(umad_send(-1, 32, buffer, 256, 0, 0), -EIO);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(umad_send(-1, 0, buffer, 24, 0, 0), -EIO);
	cr_assert_eq(errno, EINVAL);
	cr_assert_eq(umad_send(-1, 0, buffer, 256, 0, 0), -EIO);
	cr_assert_eq(errno, EBADF);
}

/* Messages of all lengths, in the datagram and in a memfd, to a program with a small buffer. UMAD-RECV-01 */
Test(umad_lib, a_mad_that_does_not_fit_is_kept)
{
	static const uint32_t lengths[] = {
		24, 256, 257, 1000, UR_UMAD_INLINE, UR_UMAD_INLINE + 1, 500000};
	struct ib_user_mad *mad = calloc(1, sizeof(*mad) + 500000);
	uint8_t *sent = malloc(500000);
	int port[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, port), 0);
	for (unsigned i = 0; i < 500000; i++)
		sent[i] = (uint8_t)(i * 5 + i / 256);
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct ur_umad_mad head = {.kind = UR_UMAD_MAD, .length = lengths[i]};
		int length = 256;

		head.umad.agent_id = 3;
		cr_assert_eq(ur_umad_send_mad(port[1], &head, sent, 0), 0);
		memset(mad, 0, sizeof(*mad) + 256);
		if (lengths[i] > 256) {
			cr_assert_eq(umad_recv(port[0], mad, &length, 1000), -ENOSPC);
			cr_assert_eq(errno, ENOSPC);
			cr_assert_eq(mad->agent_id, 3);
			cr_assert_eq(memcmp(mad->data, sent, 256), 0);
		} else {
			length = (int)lengths[i];
		}
		cr_assert_eq(length, (int)lengths[i]);
		cr_assert_eq(umad_poll(port[0], 0), 0);
		cr_assert_eq(umad_recv(port[0], mad, &length, 1000), 3);
		cr_assert_eq(length, (int)lengths[i]);
		cr_assert_eq(memcmp(mad->data, sent, lengths[i]), 0);
		cr_assert_eq(umad_poll(port[0], 0), -ETIMEDOUT);
		cr_assert_eq(umad_recv(port[0], mad, &length, 0), -EAGAIN);
	}
	close(port[1]);
	cr_assert_eq(umad_recv(port[0], mad, &(int){256}, 100), -EIO);
	close(port[0]);
	free(mad);
	free(sent);
}

/* What a program sends arrives as it was, with timeout, retries and agent. */
Test(umad_lib, a_mad_is_sent_whole)
{
	struct ib_user_mad *mad = calloc(1, sizeof(*mad) + 100000);
	uint8_t *got = malloc(100000);
	int port[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, port), 0);
	for (unsigned i = 0; i < 100000; i++)
		mad->data[i] = (uint8_t)(i * 3);
	for (unsigned bytes = 256; bytes <= 100000; bytes += 99744) {
		struct ur_umad_mad head;
		int memfd;
		ssize_t n;

		cr_assert_eq(umad_send(port[0], 7, mad, (int)bytes, 50, 2), 0);
		n = ur_umad_receive(port[1], &head, sizeof(head), got, UR_UMAD_INLINE, &memfd, 0);
		cr_assert_eq(n, (ssize_t)sizeof(head) + 256);
		cr_assert_eq(memfd >= 0, bytes > UR_UMAD_INLINE);
		if (memfd >= 0) {
			cr_assert_eq(ur_umad_read_rest(memfd, got, 256, bytes), 0);
			close(memfd);
		}
		cr_assert_eq(head.length, bytes);
		cr_assert_eq(head.umad.agent_id, 7);
		cr_assert_eq(head.umad.timeout_ms, 50);
		cr_assert_eq(head.umad.retries, 2);
		cr_assert_eq(memcmp(got, mad->data, bytes), 0);
	}
	close(port[0]);
	close(port[1]);
	free(mad);
	free(got);
}
