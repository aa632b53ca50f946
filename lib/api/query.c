/* SPDX-License-Identifier: BSD-3-Clause */
#include <endian.h>
#include <errno.h>

#include "api/device.h"
#include "api/mcast.h"

#define NO_VENDOR      0xffffff /* an OUI that is not assigned; programs take 0 for a failed query */
#define PHYS_LINK_UP   5	/* IBA 14.2.5.6, PortPhysicalState */
#define PHYS_DISABLED  3
#define WIDTH_4X       2       /* LinkWidthActive */
#define SPEED_25G      32      /* LinkSpeedExtActive, each lane */
#define SPEED_50G      64      /* HDR */
#define VLS_0_TO_14    5       /* VLCap */
#define CLOCK_KHZ      1000000 /* the endpoint's clock counts nanoseconds */
#define SUBNET_TIMEOUT 18      /* as kernel drivers of RoCE report */

int uroce_query_device(struct ibv_context *ctx, struct ibv_device_attr *a)
{
	struct ur_device *dev = ur_device(ctx);

	*a = (struct ibv_device_attr){
		.fw_ver = "uroce",
		.vendor_id = NO_VENDOR,
		.max_mr_size = UINT64_MAX,
		.page_size_cap = 4096,
		.max_qp = (int)(dev->cfg.transport.max_qp * dev->worker_cnt),
		.max_qp_wr = 32768,
		.device_cap_flags = IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_MGT_EXTENSIONS |
				    IBV_DEVICE_MEM_WINDOW | IBV_DEVICE_MEM_WINDOW_TYPE_2B |
				    IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID,
		.max_sge = (int)dev->cfg.transport.max_sge,
		.max_sge_rd = (int)dev->cfg.transport.max_sge,
		.max_cq = (int)dev->cfg.transport.max_cq,
		.max_cqe = 1 << 20,
		.max_mr = (int)dev->cfg.transport.max_mr,
		.max_mw = (int)ur_windows_entries(dev->cfg.transport.max_mr),
		.max_pd = (int)dev->cfg.transport.max_pd,
		.max_qp_rd_atom = (int)dev->cfg.transport.max_rd_atomic,
		.max_qp_init_rd_atom = (int)dev->cfg.transport.max_rd_atomic,
		.atomic_cap = IBV_ATOMIC_GLOB,
		.max_ah = 1 << 20,
		.max_srq = (int)dev->cfg.transport.max_srq,
		.max_srq_wr = 32768,
		.max_srq_sge = (int)dev->cfg.transport.max_sge,
		.max_pkeys = 1,
		.max_mcast_grp = UR_MCAST_GROUPS,
		.max_mcast_qp_attach = UR_MCAST_GROUP_QPS,
		.max_total_mcast_qp_attach = UR_ATTACHMENTS_MAX,
		.phys_port_cnt = 1,
	};
	a->node_guid = htobe64(ur_device_guid(dev));
	a->sys_image_guid = a->node_guid;
	return 0;
}

int uroce_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
			  struct ibv_device_attr_ex *out, size_t bytes)
{
	struct ibv_device_attr_ex a = {.hca_core_clock = CLOCK_KHZ, .phys_port_cnt_ex = 1};

	if ((input && input->comp_mask) || bytes < sizeof(a.orig_attr))
		return EINVAL;
	uroce_query_device(ctx, &a.orig_attr);
	a.device_cap_flags_ex = a.orig_attr.device_cap_flags;
	memset(out, 0, bytes);
	memcpy(out, &a, bytes < sizeof(a) ? bytes : sizeof(a));
	return 0;
}

int uroce_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
		return EINVAL;
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK)
		values->raw_clock =
			(struct timespec){.tv_nsec = (long)ur_clock_ns(&ur_device(ctx)->clock)};
	return 0;
}

static bool is_up(struct ur_device *dev)
{
	return dev->shared ? ur_shared_is_up(dev->shared) : ur_port_link_up(&dev->port);
}

/*
 * A lane's, of four. What carries the packets has no lanes, and often no rate: 100 Gb/s, and 200 through shared
 * memory, which carries more than 100. UCX chooses between SEND and READ by it.
 */
static uint8_t lane_speed(const struct ur_device *dev)
{
	enum ur_driver driver = dev->cfg.port.driver;

	return driver == UR_DRIVER_MEMIF || driver == UR_DRIVER_RING ? SPEED_50G : SPEED_25G;
}

/* A shared interface may get more addresses later. */
static unsigned gid_table_len(const struct ur_device *dev)
{
	return dev->shared ? UR_GIDS_MAX : dev->gid_cnt;
}

int uroce_query_port(struct ibv_context *ctx, uint8_t port_num, struct ibv_port_attr *a)
{
	struct ur_device *dev = ur_device(ctx);
	bool up;

	if (port_num != 1)
		return EINVAL;
	up = is_up(dev);
	*a = (struct ibv_port_attr){
		.state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN,
		.phys_state = up ? PHYS_LINK_UP : PHYS_DISABLED,
		.active_width = WIDTH_4X,
		.active_speed = lane_speed(dev),
		.max_vl_num = VLS_0_TO_14,
		.subnet_timeout = SUBNET_TIMEOUT,
		.port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.flags = IBV_QPF_GRH_REQUIRED,
		.max_mtu = IBV_MTU_4096,
		.active_mtu = (enum ibv_mtu)(dev->mtu_shift - 7),
		.gid_tbl_len = (int)gid_table_len(dev),
		.max_msg_sz = 1u << 31,
		.pkey_tbl_len = 1,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
	};
	return 0;
}

int uroce_query_gid(struct ibv_context *ctx, uint8_t port_num, int index, union ibv_gid *gid)
{
	struct ur_device *dev = ur_device(ctx);

	struct ur_gid g;

	if (port_num != 1 || index < 0 || (unsigned)index >= gid_table_len(dev))
		return EINVAL;
	g = ur_device_gid(dev, (unsigned)index);
	memcpy(gid->raw, g.b, 16);
	return 0;
}

int uroce_query_pkey(struct ibv_context *ctx, uint8_t port_num, int index, __be16 *pkey)
{
	if (port_num != 1 || index != 0)
		return EINVAL;
	*pkey = 0xffff;
	return 0;
}

struct count_call {
	struct ur_worker *worker;
	struct uroce_objects *objects;
};

static void count_on_worker(void *arg, uint64_t now_ns)
{
	struct count_call *c = arg;
	struct ur_engine *e = ur_worker_engine(c->worker);

	c->objects->qps_time_wait += ur_engine_objects(e, now_ns).time_wait;
	if (ur_engine_cm(e))
		c->objects->cm_connections = ur_cm_ids_in_use(ur_engine_cm(e));
}

int uroce_query_objects(struct ibv_context *ctx, struct uroce_objects *objects)
{
	struct ur_device *dev = ur_device(ctx);

	pthread_mutex_lock(&dev->lock);
	*objects = dev->objects;
	pthread_mutex_unlock(&dev->lock);
	objects->qps_time_wait = 0;
	for (unsigned i = 0; i < dev->worker_cnt; i++) {
		struct count_call c = {dev->workers[i], objects};

		ur_worker_call(dev->workers[i], count_on_worker, &c);
	}
	return 0;
}
