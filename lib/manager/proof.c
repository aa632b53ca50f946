/* SPDX-License-Identifier: BSD-3-Clause */
#include "manager/proof.h"

#include "wire/bytes.h"
#include "wire/siphash.h"

/* The second halves of the two keys; the zone's key is the first one. "manager" and a digit. */
#define PROVES UINT64_C(0x6d616e6167657231)
#define HIDES  UINT64_C(0x6d616e6167657232)

#define HEAD 16

/* Of each field but the proof, in the order of the wire: managers may be of different byte orders. */
static uint64_t proof_of(uint64_t zone_key, uint32_t order, uint64_t number,
			 const struct ur_manager_info *info)
{
	uint8_t message[HEAD + UR_SMP_DATA_BYTES] = {0};
	struct ur_manager_info rest = *info;

	rest.proof = 0;
	ur_store64(message, order);
	ur_store64(message + 8, number);
	ur_put_manager_info(message + HEAD, &rest);
	return ur_siphash(zone_key, PROVES, message, sizeof(message));
}

static uint64_t pad_of(uint64_t zone_key, uint32_t order, uint64_t number,
		       const struct ur_manager_info *info)
{
	uint8_t message[32];

	if (order == UR_PROOF_ANSWER)
		return 0;
	ur_store64(message, order);
	ur_store64(message + 8, number);
	ur_store64(message + 16, info->number);
	ur_store64(message + 24, info->guid);
	return ur_siphash(zone_key, HIDES, message, sizeof(message));
}

void ur_proof_seal(uint64_t zone_key, uint32_t order, uint64_t number, struct ur_manager_info *info)
{
	info->m_key ^= pad_of(zone_key, order, number, info);
	info->proof = proof_of(zone_key, order, number, info);
}

/* MGR-ZONE-06 */
bool ur_proof_open(uint64_t zone_key, uint32_t order, uint64_t number, struct ur_manager_info *info)
{
	if (info->proof != proof_of(zone_key, order, number, info))
		return false;
	info->m_key ^= pad_of(zone_key, order, number, info);
	return true;
}
