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

#include <criterion/criterion.h>
#include <infiniband/umad.h>
#include <infiniband/umad_str.h>

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
