/* SPDX-License-Identifier: BSD-3-Clause */
#include "admission_sim.h"

static const unsigned loads[] = {12, 20, 40};

/*
 * A request that must wait is refused exactly once, because only the refusal informs the receiver.
 * Plain refuses it once per retry delay. So if the wait is ten delays, the ratio is a tenth.
 */
static void compare(unsigned senders, unsigned peers, unsigned load10)
{
	static const char *const name[MODES] = {"plain", "ab", "intelligent", "paper"};
	struct result r[MODES];
	const struct result *plain = &r[UR_ADM_PLAIN], *ab = &r[UR_ADM_AB],
			    *granted = &r[UR_ADM_INTELLIGENT], *paper = &r[UR_ADM_PAPER];

	for (enum ur_adm_mode m = UR_ADM_PLAIN; m < MODES; m++) {
		r[m] = run(m, senders, peers, load10, NULL);
		print(name[m], senders, load10, &r[m]);
	}
	cr_assert_leq(granted->refused, 1.01);
	if (plain->refused >= 10.1)
		cr_assert_leq(granted->refused, 0.1 * plain->refused);
	cr_assert_geq(granted->jain, 0.95);
	cr_assert_leq(granted->worst, plain->worst);
	cr_assert_leq(granted->worst, ab->worst);
	cr_assert_leq(granted->mean, 1.001 * plain->mean);
	cr_assert_leq(granted->mean, 1.001 * ab->mean);
	/* The claims of the paper: fewer refusals than A/B aging has, the more the greater the overload. */
	if (ab->refused >= 5)
		cr_assert_lt(paper->refused, ab->refused);
	cr_assert_geq(paper->jain, 0.95);
}

/* ADM-GRANT-01, ADM-STATUS-01 */
Test(admission_sim, two_to_eight_senders)
{
	for (unsigned n = 2; n <= 8; n *= 2)
		for (unsigned l = 0; l < 3; l++)
			compare(n, n, loads[l]);
}

Test(admission_sim, sixteen_and_thirty_two_senders)
{
	for (unsigned n = 16; n <= 32; n *= 2)
		for (unsigned l = 0; l < 3; l++)
			compare(n, n, loads[l]);
}

Test(admission_sim, sixty_four_senders)
{
	for (unsigned l = 0; l < 3; l++)
		compare(64, 64, loads[l]);
}

/* ADM-SST-04: a change wakes as many queue pairs of a peer as there are receives */
Test(admission_sim, sixty_four_senders_of_four_peers)
{
	for (unsigned l = 0; l < 3; l++)
		compare(64, 4, loads[l]);
}
