/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UR_NS3_HOST_H
#define UR_NS3_HOST_H

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/query.h"
#include "engine/verbs.h"
#include "random.h"
#include "wire.h"

namespace sim
{

/*
 * Which delay of a packet its sender hears from the answer, in mode extended. Only NOTHING is what the engine measures by
 * itself. The others change the residence that an answer names, so that the round trip without residence is that delay;
 * timers, which add the residence, remain as they are. Frames are then not whole ones.
 */
enum class Told {
	NOTHING, /* round trips, or what switches have stamped */
	ONE_WAY, /* from port to port: the hosts' clocks are the same */
	SWITCHES /* the time in switches alone, of every packet, as in the CMDPD paper */
};

struct HostAttr {
	struct ur_limits limits;
	uint32_t max_mr = 4;
	uint32_t window = 128, ackreq_every = 16;
	bool repath = true; /* timeouts change UDP source ports, */
	bool plb = true;    /* and so does congestion */
	const struct ur_engine_qos *qos = nullptr;
	const struct ur_cc_attr *pacing = nullptr;
	/* The worker: time from an event to the turn that it causes, frames of one call of the engine. */
	uint64_t turn_delay_ns = 200;
	unsigned tx_cap = 8;
	/*
	 * The transmit ring: a turn ends when the port is busy for longer than this, and goes on when half of it has
	 * been sent. With credits the ring holds one frame, and this is not used.
	 */
	uint64_t backlog_ns = 20000;
	/* Frames have all their bytes, and their ICRC is computed and verified; otherwise payload is only a length. */
	bool whole_frames = false;
	Told told = Told::NOTHING;
	HostAttr();
};

/* Memory for an engine and its objects: zeroed, aligned to 64 bytes, freed with the owner. */
class Memory
{
      public:
	void *take(size_t bytes);
	size_t bytes() const
	{
		return bytes_;
	}
	~Memory();

      private:
	std::vector<void *> blocks_;
	size_t bytes_ = 0;
};

/*
 * A host: one engine of uroce, its worker's loop, and a port. The turns of the loop are those of tests/sim
 * (docs/design/simulator.md): input as frames arrive, a turn of timers and output after each event.
 */
class Host : public Device
{
      public:
	/* here: this process simulates it. Otherwise it has no engine, and only its addresses and its attributes are known. */
	Host(uint32_t idx, const HostAttr &attr, uint64_t random, bool here = true);

	Host(const Host &) = delete;
	Host &operator=(const Host &) = delete;

	Wire &out()
	{
		return wire_;
	}
	/* The direction of the link that arrives here. */
	void set_in(Wire *wire)
	{
		in_ = wire;
	}

	struct ur_engine *engine()
	{
		return engine_;
	}
	struct ur_mem *mem()
	{
		return mem_;
	}
	Memory &memory()
	{
		return memory_;
	}
	uint32_t idx() const
	{
		return idx_;
	}
	struct ur_gid gid() const;
	void mac(uint8_t out[6]) const;

	uint64_t turn_delay_ns() const
	{
		return attr_.turn_delay_ns;
	}
	/* Queues a turn; call it after each doorbell. */
	void kick();

	void receive(Frame *f, unsigned port) override;
	void receive_credit(unsigned port, unsigned vl, uint32_t bytes) override;
	Context context() const override
	{
		return host_context(idx_);
	}
	bool is_here() const
	{
		return engine_;
	}
	/* A notice of another host has come (Network::tell()). */
	void notice(Notice n)
	{
		on_notice(n);
	}

	std::function<void(const Notice &)> on_notice;
	/* Called after the engine has taken a frame in: completions may be there. */
	std::function<void()> on_input;
	/* Called with each frame that arrives, before the engine gets it. */
	std::function<void(const Frame &)> on_arrival;
	/* Called with each frame that the engine has made. True: it is lost on the link of this host. */
	std::function<bool(const Frame &)> on_send;

	uint64_t received = 0, received_bytes = 0, dropped_by_engine = 0, bad = 0;
	uint64_t waiting = 0, waiting_bytes = 0; /* frames that wait for credits */

	void validate() const;

      private:
	void turn(uint64_t at_ns);
	void turn_at(uint64_t at_ns);
	uint64_t send_all();
	uint64_t send_with_credits();
	Frame *make_frame(const struct ur_tx &tx);
	void start(Frame *f);
	enum ur_drop input(const Frame &f);
	void note_asked(const Frame &f);
	void note_headers(Frame *f, const struct ur_packet &p);

	uint32_t idx_;
	HostAttr attr_;
	Memory memory_;
	struct ur_mem *mem_ = nullptr;
	struct ur_engine *engine_ = nullptr;
	Wire wire_;
	Wire *in_ = nullptr;
	uint64_t wake_ns_ = UINT64_MAX; /* time of the turn that is scheduled; UINT64_MAX: none */
	uint64_t blocked_until_ns_ = 0; /* the transmit ring is full until then */
	uint64_t port_free_ns_ = 0;	/* when the last bit of the last frame has left */
	FrameQueue wait_;		/* a frame that has no credits */
	/* Requests that have arrived last, by sender and stamp: what the answer to them is to tell. */
	struct Asked {
		uint32_t src, stamp, ns; /* ns: 0, none */
	};
	Asked &asked(uint32_t src, uint32_t stamp)
	{
		return asked_[mix(stamp, src) % asked_.size()];
	}
	std::vector<Asked> asked_; /* not with Told::NOTHING */
};

} // namespace sim

#endif
