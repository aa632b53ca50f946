/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "uroce/uroce.h"
#include "verbs/device.h"
#include "verbs/names.h"

/*
 * VERBS-ABI-01: the names of libibverbs over those of liburoce: an object of liburoce is the object of the program. Posting and
 * polling do not pass here: verbs.h calls them through the context.
 */

#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* ---- device ---- */

static void identify(const struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	attr->node_guid = attr->sys_image_guid = ibv_get_device_guid(ctx->device);
	attr->vendor_part_id = ur_verbs_device(ctx->device)->part_id;
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	int rc = uroce_query_device(ctx, attr);

	identify(ctx, attr);
	return rc;
}

int ur_verbs_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			     struct ibv_device_attr_ex *attr, size_t bytes)
{
	int rc = uroce_query_device_ex(ctx, input, attr, bytes);

	if (!rc)
		identify(ctx, &attr->orig_attr);
	return rc;
}

/*
 * The port is reported active as soon as it is open, because some programs do not start otherwise, and a memif port
 * has no link before its peer comes.
 */
int ur_verbs_query_port(struct ibv_context *ctx, uint8_t port_num, struct ibv_port_attr *attr,
			size_t bytes)
{
	struct ibv_port_attr a = {0};
	int rc = uroce_query_port(ctx, port_num, &a);

	if (rc)
		return rc;
	a.state = IBV_PORT_ACTIVE;
	a.phys_state = 5; /* LinkUp */
	if (!a.max_vl_num)
		a.max_vl_num = 1;
	if (a.gid_tbl_len < UR_VERBS_GIDS)
		a.gid_tbl_len = UR_VERBS_GIDS;
	memset(attr, 0, bytes);
	memcpy(attr, &a, bytes < sizeof(a) ? bytes : sizeof(a));
	return 0;
}

/* Programs that are older than the last members pass a shorter struct. */
int ibv_query_port(struct ibv_context *ctx, uint8_t port_num, struct _compat_ibv_port_attr *attr)
{
	return ur_verbs_query_port(ctx, port_num, (struct ibv_port_attr *)(void *)attr,
				   offsetof(struct ibv_port_attr, port_cap_flags2));
}

/* The kernel leaves a thread asleep whose descriptor is closed, and programs take an error for one of the network. */
static int sleep_on(int rc)
{
	if (rc && errno == ECANCELED)
		for (;;)
			pause();
	return rc;
}

int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event)
{
	return sleep_on(uroce_get_async_event(ctx, event));
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	uroce_ack_async_event(event);
}

/*
 * After fork() the parent's memory stays the parent's: the library reaches it by the parent's own mapping, not by
 * physical addresses.
 */
int ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

int ibv_dofork_range(void *base, size_t size)
{
	return 0;
}

/* ---- protection domains and memory ---- */

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	return uroce_alloc_pd(ctx);
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	return uroce_dealloc_pd(pd);
}

/* Optional rights, and those that only say how memory is mapped, make no difference here. */
static bool rights(unsigned access, int *known)
{
	if (access & IBV_ACCESS_ON_DEMAND) {
		errno = EOPNOTSUPP;
		return false;
	}
	*known = (int)(access & ~(unsigned)(IBV_ACCESS_OPTIONAL_RANGE | IBV_ACCESS_HUGETLB));
	return true;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	int known;

	return rights((unsigned)access, &known) ? uroce_reg_mr(pd, addr, length, known) : NULL;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
				unsigned access)
{
	int known;

	return rights(access, &known) ? uroce_reg_mr_iova(pd, addr, length, iova, known) : NULL;
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
			       int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned)access);
}

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length,
		 int access)
{
	int known = 0, rc;

	if (flags & IBV_REREG_MR_CHANGE_ACCESS && !rights((unsigned)access, &known))
		return IBV_REREG_MR_ERR_INPUT;
	rc = uroce_rereg_mr(mr, flags, pd, addr, length, known);
	if (!rc)
		return 0;
	errno = rc;
	return rc == EINVAL ? IBV_REREG_MR_ERR_INPUT : IBV_REREG_MR_ERR_CMD;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	return uroce_dereg_mr(mr);
}

/* ---- completions ---- */

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	return uroce_create_comp_channel(ctx);
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	return uroce_destroy_comp_channel(channel);
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	return uroce_create_cq(ctx, cqe, cq_context, channel, comp_vector);
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	return uroce_resize_cq(cq, cqe);
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	return uroce_destroy_cq(cq);
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	return sleep_on(uroce_get_cq_event(channel, cq, cq_context));
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned nevents)
{
	uroce_ack_cq_events(cq, nevents);
}

/* ---- queue pairs ---- */

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr)
{
	return uroce_create_srq(pd, attr);
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int attr_mask)
{
	return uroce_modify_srq(srq, attr, attr_mask);
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
	return uroce_query_srq(srq, attr);
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	return uroce_destroy_srq(srq);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	return uroce_create_qp(pd, attr);
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return uroce_qp_to_qp_ex(qp);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	return uroce_modify_qp(qp, attr, attr_mask);
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init_attr)
{
	return uroce_query_qp(qp, attr, attr_mask, init_attr);
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	return uroce_query_qp_data_in_order(qp, op, flags);
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	return uroce_destroy_qp(qp);
}

/* ---- address handles ---- */

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	return uroce_create_ah(pd, attr);
}

int ibv_init_ah_from_wc(struct ibv_context *ctx, uint8_t port_num, struct ibv_wc *wc,
			struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	return uroce_init_ah_from_wc(ctx, port_num, wc, grh, attr);
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
				     uint8_t port_num)
{
	struct ibv_ah_attr attr;
	int rc = uroce_init_ah_from_wc(pd->context, port_num, wc, grh, &attr);

	if (!rc)
		return uroce_create_ah(pd, &attr);
	errno = rc;
	return NULL;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	return uroce_destroy_ah(ah);
}

/* ---- multicast ---- */

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return uroce_attach_mcast(qp, gid, lid);
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	return uroce_detach_mcast(qp, gid, lid);
}
