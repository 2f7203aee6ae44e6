/* SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception */
/* The program. All of it is in main.c, which the tests have too. */
#include "tests/sim/sim.h"

int main(int argc, char **argv)
{
	return sim_main(argc, argv);
}
