# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
# Muninn. `make help` lists the targets. Everything that is built goes to build/.

SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

# Variants: release (what is installed), asan (ASan + UBSan), tsan, coverage, clang, fuzz. One
# object tree for each.
VARIANT ?= release
BUILD := build
OBJ := $(BUILD)/obj/$(VARIANT)
TESTBIN := $(BUILD)/tests/$(VARIANT)

ifeq ($(VARIANT),release)
BIN := $(BUILD)/bin
LIB := $(BUILD)/lib
else
BIN := $(BUILD)/$(VARIANT)/bin
LIB := $(BUILD)/$(VARIANT)/lib
endif

# SHARED=1: the same objects, but the test programs take the core from a library that the dynamic
# linker loads, so that a changed object costs one link in place of one for each program.
CORE_LIB := $(LIB)/libmuninn.a
ifdef SHARED
TESTBIN := $(TESTBIN)-shared
CORE_LIB := $(LIB)/libmuninn.so
endif

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wvla -Wmissing-prototypes -Werror
CPPFLAGS += -I. -D_GNU_SOURCE
CFLAGS ?= -O2 -g
CFLAGS += -std=gnu11 -fPIC -pthread -fno-strict-aliasing -MMD -MP $(WARNINGS)
LDFLAGS += -pthread
LDLIBS += -lisal -lxxhash -luring -lcrypto -lm

# -g1: functions and lines for the sanitizers' reports.
ifeq ($(VARIANT),asan)
CFLAGS += -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -DMUNINN_DEBUG
LDFLAGS += -fsanitize=address,undefined
endif
ifeq ($(VARIANT),tsan)
CFLAGS += -O1 -g1 -fno-omit-frame-pointer -fsanitize=thread
LDFLAGS += -fsanitize=thread
endif
ifeq ($(VARIANT),coverage)
# Counters that are not atomic: several times as fast, and a count that two threads lose is still
# not zero.
CFLAGS += -Og --coverage -fprofile-update=single
LDFLAGS += --coverage
endif
ifeq ($(VARIANT),clang)
CC := clang
endif
# What the fuzzers link: ASan + UBSan, and the counters of libFuzzer.
ifeq ($(VARIANT),fuzz)
CC := clang
CFLAGS += -fno-omit-frame-pointer -fsanitize=address,undefined,fuzzer-no-link -fno-sanitize-recover=all -DMUNINN_DEBUG
LDFLAGS += -fsanitize=address,undefined
# The fuzzer does not learn from what the record store and the flash do with it: that is no answer
# to an input, and takes most of the time. What they decode is; and comparisons count only where
# they are with what an input says.
LEARNT_FROM := $(addprefix nand/,format.c geometry.c faults_text.c power_text.c timing.c settings.c) \
	$(addprefix engine/muninn/,format.c page.c index/bloom_table.c index/bloom_search.c)
UNWATCHED := $(filter-out $(LEARNT_FROM),$(wildcard common/*.c nand/*.c engine/muninn/*.c engine/muninn/index/*.c))
$(UNWATCHED:%.c=$(OBJ)/%.o): CFLAGS += -fno-sanitize-coverage=inline-8bit-counters,pc-table,trace-cmp,indirect-calls
$(OBJ)/engine/%.o $(OBJ)/osd/expression_match.o $(OBJ)/osd/expression_zeros.o: CFLAGS += -fno-sanitize-coverage=trace-cmp
endif

# The engine's allocator in muninn-bench and its tests; the sanitizers bring their own. The module
# has that of tgtd.
ALLOCATOR := $(if $(filter asan tsan fuzz,$(VARIANT)),,-ljemalloc)

# Compilation jobs of the targets that build and then do more (run, check, ...); `make -jN` of one's
# own wins.
JOBS := $(shell nproc)
SUBMAKE = $(MAKE) $(if $(findstring -j,$(MAKEFLAGS)),,-j$(JOBS)) --no-print-directory $(if $(V),,-s)

# Short lines; `make V=1` shows the commands.
Q := $(if $(V),,@)
say = $(if $(V),@:,@printf '  %-5s %s\n' $(1) $(if $(2),$(2),$@))

# ---- sources: by folder, so that a new file needs no line here ----

CORE_SRC := $(wildcard common/*.c nand/*.c engine/*.c engine/*/*.c engine/*/*/*.c engine/*/*/*/*.c wire/*.c osd/*.c disk/*.c)
CLIENT_SRC := $(wildcard client/*.c)
CTL_SRC := $(wildcard client/ctl/*.c)
FSCK_SRC := $(wildcard client/fsck/*.c)
MODULE_SRC := $(wildcard daemon/module/*.c)
DAEMON_SRC := $(wildcard daemon/*.c)
BENCH_SRC := $(wildcard bench/*.c)
CORE_OBJ := $(CORE_SRC:%.c=$(OBJ)/%.o)
CLIENT_OBJ := $(CLIENT_SRC:%.c=$(OBJ)/%.o)
CTL_OBJ := $(CTL_SRC:%.c=$(OBJ)/%.o)
FSCK_OBJ := $(FSCK_SRC:%.c=$(OBJ)/%.o)
BENCH_OBJ := $(BENCH_SRC:%.c=$(OBJ)/%.o)
MODULE_OBJ := $(MODULE_SRC:%.c=$(OBJ)/%.o)
# What `muninn-bench peers` compares with: a library for each store whose header is there.
PEER_HEADERS := rocksdb=rocksdb/c.h leveldb=leveldb/c.h lmdb=lmdb.h
PEERS := $(foreach p,$(PEER_HEADERS),$(if $(wildcard /usr/include/$(lastword $(subst =, ,$(p)))),$(firstword $(subst =, ,$(p)))))
PEER_LIBS := $(PEERS:%=$(LIB)/peer_%.so)
# What muninnd's main program and the unit tests link.
DAEMON_PARTS := $(patsubst %.c,$(OBJ)/%.o,$(filter-out daemon/muninnd.c,$(DAEMON_SRC)) \
	$(filter-out daemon/module/bs_muninn.c daemon/module/identity.c daemon/module/stream.c daemon/module/answers.c,$(MODULE_SRC)))

# Each tests/FOLDER/test_*.c is a program. Others of its folder and of the one above are its
# helpers.
TEST_SRC := $(sort $(wildcard tests/*/test_*.c tests/*/*/test_*.c))
TEST_BINS := $(TEST_SRC:tests/%.c=$(TESTBIN)/%)
# Those that say so run once more, for the Bloom index.
INDEX_TEST_SRC := $(if $(TEST_SRC),$(shell grep -lF 'Runs for each index.' $(TEST_SRC)))
INDEX_E2E_TESTS = $(if $(E2E_TESTS),$(shell grep -lF 'Runs for each index.' $(E2E_TESTS)))
# Those that say so only count what something costs: a sanitizer has nothing to find there that the
# others do not have.
PLAIN_TEST_SRC := $(if $(TEST_SRC),$(shell grep -lF 'Not under sanitizers.' $(TEST_SRC)))
# Test programs with threads (they include pthread.h) also run under ThreadSanitizer.
THREAD_TEST_SRC := $(if $(TEST_SRC),$(shell grep -l pthread.h $(TEST_SRC)))
E2E_TESTS := $(wildcard tests/e2e/test_*.py)
# Tests of scripts/.
SCRIPT_TESTS := $(wildcard tests/scripts/test_*.py)
# End-to-end tests that also run with everything built with ASan + UBSan.
SANITIZED_E2E_TESTS := $(if $(E2E_TESTS),$(shell grep -l '^SANITIZED = True' $(E2E_TESTS)))

.PHONY: all unit-tests thread-tests
all: $(LIB)/libmuninn.a $(BIN)/muninn-bench $(BIN)/muninnctl $(BIN)/muninn-fsck $(BIN)/muninnd $(LIB)/bs_muninn.so $(PEER_LIBS)
unit-tests: $(TEST_BINS)
thread-tests: $(THREAD_TEST_SRC:tests/%.c=$(TESTBIN)/%)

$(OBJ)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(LIB)/libmuninn.a: $(CORE_OBJ)
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) rcs $@ $^

$(LIB)/libmuninn.so: $(CORE_OBJ)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) $(TEST_LDFLAGS) -shared -s -Wl,-soname,$(@F) -o $@ $^ $(LDLIBS)

$(LIB)/libosdclient.a: $(CLIENT_OBJ)
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) rcs $@ $^

$(LIB)/libdaemon.a: $(DAEMON_PARTS)
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) rcs $@ $^

# All of muninn-bench but its main program, for the unit tests.
$(LIB)/libbench.a: $(filter-out $(OBJ)/bench/main.o,$(BENCH_OBJ))
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) rcs $@ $^

$(BIN)/muninn-bench: $(OBJ)/bench/main.o $(LIB)/libbench.a $(LIB)/libosdclient.a $(LIB)/libmuninn.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) -liscsi -ljansson $(ALLOCATOR)

$(LIB)/peer_%.so: $(OBJ)/bench/peers/%.o $(OBJ)/common/error.o
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) -shared -o $@ $^ -l$*

$(BIN)/muninnctl: $(CTL_OBJ) $(LIB)/libosdclient.a $(LIB)/libmuninn.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) -liscsi -ljansson

$(BIN)/muninn-fsck: $(FSCK_OBJ) $(LIB)/libmuninn.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) -ljansson

$(BIN)/muninnd: $(OBJ)/daemon/muninnd.o $(LIB)/libdaemon.a $(LIB)/libmuninn.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) -linih -lsystemd -ljansson -lmicrohttpd -lm

# tgtd exports its own symbols to its modules; the version script keeps ours and its apart.
$(LIB)/bs_muninn.so: $(MODULE_OBJ) $(LIB)/libmuninn.a daemon/module/exports.map
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,--version-script=daemon/module/exports.map -Wl,-z,now -o $@ \
		$(filter-out %.map,$^) $(LDLIBS)

# ---- tgt: headers of the installed version, and which tgtd the module is built for ----

# Replace by a folder of one's own that holds the unpacked source of the installed version.
TGT_SRC ?=
TGTD ?= /usr/sbin/tgtd
TGT_VERSION := $(shell dpkg-query -W -f '$${Version}' tgt 2>/dev/null)
TGT_NAME := $(BUILD)/tgt-$(lastword $(subst :, ,$(TGT_VERSION)))
TGT_DIR := $(or $(TGT_SRC),$(TGT_NAME))
TGT_IDENTITY := $(BUILD)/generated/tgt_identity.h
TGT_USERS := $(MODULE_OBJ) $(OBJ)/daemon/tgt_control.o \
	$(patsubst %,$(OBJ)/tests/daemon/%.o,test_attempts test_connections test_io_threads test_registrations test_requests test_unit test_osd_unit)

$(TGT_USERS): CPPFLAGS += -isystem $(TGT_DIR)/usr -isystem $(BUILD)/generated
$(TGT_USERS): $(TGT_DIR)/usr/tgtd.h $(TGT_IDENTITY)

$(TGT_NAME)/usr/tgtd.h:
	@scripts/tgt-headers $(TGT_NAME)

$(TGT_SRC)/usr/tgtd.h:
	@echo "TGT_SRC=$(TGT_SRC): there is no usr/tgtd.h in it; name the folder of tgt's unpacked source" >&2; exit 1

$(TGTD):
	@echo '$(TGTD): no such program; run scripts/bootstrap, which installs the package tgt' >&2; exit 1

$(TGT_IDENTITY): $(TGTD) scripts/tgt-identity
	@mkdir -p $(@D)
	@scripts/tgt-identity $(TGTD) >$@

# ---- tests ----

# 400 programs are linked for `make check`; gold takes a third of the time.
TEST_LDFLAGS := $(if $(wildcard /usr/bin/ld.gold),-fuse-ld=gold)
comma := ,
# It plays an engine without history.
$(TESTBIN)/daemon/test_device: TEST_LDFLAGS += -Wl,--wrap=engine_capabilities
# It says whom the daemon runs as, and which group there is.
$(TESTBIN)/daemon/test_config_secret: TEST_LDFLAGS += -Wl,--wrap=getgrnam,--wrap=geteuid
# It plays a tgtd that refuses what a target offers.
$(TESTBIN)/daemon/test_server: TEST_LDFLAGS += \
	$(addprefix -Wl$(comma)--wrap=,tgt_target_create tgt_target_offer tgt_target_delete)
# It plays a device that is asked for its map.
$(TESTBIN)/daemon/test_page: TEST_LDFLAGS += -Wl,--wrap=tgt_lun_ask
# It plays what the service answers.
$(TESTBIN)/daemon/test_http: TEST_LDFLAGS += -Wl,--wrap=admin_carry_out
# It plays a drive that fails behind the first names of a directory.
$(TESTBIN)/client/test_tree_unread: TEST_LDFLAGS += -Wl,--wrap=readdir
# It plays a file system with shorter names and link targets.
$(TESTBIN)/client/test_tree_too_long: TEST_LDFLAGS += \
	$(addprefix -Wl$(comma)--wrap=,fpathconf mkdirat symlinkat)
# It plays another export, which ends between two calls, a slow writer, and an end of its own.
$(TESTBIN)/client/test_tree_resume_export: TEST_LDFLAGS += \
	$(addprefix -Wl$(comma)--wrap=,flock renameat2 aside_take mkdirat unlinkat)
# It holds threads that program.
$(TESTBIN)/engine/objects/test_sealer: TEST_LDFLAGS += -Wl,--wrap=seal_run
# It is told when somebody waits.
$(TESTBIN)/engine/objects/test_sealer_awaited: TEST_LDFLAGS += -Wl,--wrap=pthread_cond_wait
# It says which files are there.
$(TESTBIN)/daemon/test_allocator: TEST_LDFLAGS += -Wl,--wrap=access
ifeq ($(VARIANT),release)
# Compiling most tests takes longer than running them.
$(OBJ)/tests/%.o: CFLAGS += -O1
endif
# It plays a host without space, and looks where transactions begin.
SIM_WRAPS := $(addprefix -Wl$(comma)--wrap=,nand_program nand_program_whole nand_host_is_full \
	engine_begin engine_merge engine_make_space)
$(TESTBIN)/sim/test_sim: TEST_LDFLAGS += $(SIM_WRAPS)
# It looks at the calls of an object store that not every one has: the names are in its source.
OPTIONAL_CALLS = $(shell sed -n 's/^\(IN_FRONT.*, \|void __wrap_\)\(engine_[a-z_]*\)[^a-z_].*/\2/p' tests/osd/test_capability_calls.c)
$(TESTBIN)/osd/test_capability_calls: TEST_LDFLAGS += $(addprefix -Wl$(comma)--wrap=,$(sort $(OPTIONAL_CALLS)))
# Tests that link parts of the daemon.
DAEMON_TESTS := tests/daemon/% tests/fuzz/%
# The helpers of a test: the .c files of its folder, and of the one above that is not tests/, that
# are not tests themselves. Those of osd/ also have those of wire/, and the simulator the models.
helpers_of = $(filter-out $(1)test_%.c tests/sim/muninn_sim.c,$(wildcard $(1)*.c))
SIM_HELPERS = $(call helpers_of,tests/sim/) $(call helpers_of,tests/engine/) $(call helpers_of,tests/engine/model/) \
	daemon/module/order.c
test_helpers = $(if $(filter tests/sim/%,$(1)),$(SIM_HELPERS),$(call helpers_of,$(dir $(1))) \
	$(if $(word 4,$(subst /, ,$(1))),$(call helpers_of,$(dir $(patsubst %/,%,$(dir $(1)))))) \
	$(if $(filter tests/osd/%,$(1)),$(call helpers_of,tests/wire/)))
define TEST_RULE
$(TESTBIN)/$(1:tests/%.c=%): $(OBJ)/$(1:.c=.o) $(patsubst %.c,$(OBJ)/%.o,$(call test_helpers,$(1))) \
		$(if $(filter tests/bench/%,$(1)),$(LIB)/libbench.a) \
		$(if $(CLIENT_SRC),$(LIB)/libosdclient.a) $(if $(filter $(DAEMON_TESTS),$(1)),$(LIB)/libdaemon.a) \
		$(CORE_LIB)
	@mkdir -p $$(@D)
	$$(call say,LINK)
	$$(Q)$$(CC) $$(LDFLAGS) $$(TEST_LDFLAGS) -o $$@ $$^ $$(LDLIBS) -lcmocka -liscsi -ljansson \
		$(if $(filter $(DAEMON_TESTS),$(1)),-linih -lsystemd -lmicrohttpd -lm) $(if $(filter tests/bench/%,$(1)),$$(ALLOCATOR))
endef
$(foreach t,$(TEST_SRC),$(eval $(call TEST_RULE,$(t))))
$(BIN)/muninn-sim: $(OBJ)/tests/sim/muninn_sim.o $(patsubst %.c,$(OBJ)/%.o,$(SIM_HELPERS)) $(LIB)/libmuninn.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) $(TEST_LDFLAGS) $(SIM_WRAPS) -o $@ $^ $(LDLIBS) -lcmocka

# What tests/e2e/torture.py puts below the service; plain, whatever the service is built with.
TORMENT := $(BUILD)/tests/e2e/torment.so
$(TORMENT): tests/e2e/torment/torment.c
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(CPPFLAGS) -O2 -g -std=gnu11 -fPIC $(WARNINGS) -shared -o $@ $< -luring
# They run the command, or the service of the release build.
ifeq ($(VARIANT),release)
$(TESTBIN)/bench/test_iscsi: | $(BIN)/muninnd $(LIB)/bs_muninn.so
$(TESTBIN)/bench/test_import: | $(BIN)/muninnd $(BIN)/muninnctl $(LIB)/bs_muninn.so
endif
$(addprefix $(TESTBIN)/,client/test_muninnctl client/test_nand_dump client/test_nand_dump_damage nand/test_command): | $(BIN)/muninnctl
$(TESTBIN)/client/test_fsck: | $(BIN)/muninn-fsck
$(TESTBIN)/bench/test_peers: | $(PEER_LIBS)

# ---- fuzzing: one program for each target, built with VARIANT=fuzz ----

FUZZ_TARGETS := osd disk wire client flash pdu
FUZZ_SRC := $(filter-out tests/fuzz/test_%.c,$(wildcard tests/fuzz/*.c))
define FUZZ_RULE
$(OBJ)/tests/fuzz/libfuzzer/$(1).o: tests/fuzz/libfuzzer/entry.c
	@mkdir -p $$(@D)
	$$(call say,CC,$$< for $(1))
	$$(Q)$$(CC) $$(CPPFLAGS) $$(CFLAGS) -DFUZZ_TARGET=fuzz_$(1) -c -o $$@ $$<

$(BIN)/fuzz-$(1): $(OBJ)/tests/fuzz/libfuzzer/$(1).o $(LIB)/libfuzz.a $(LIB)/libosdclient.a $(LIB)/libdaemon.a \
		$(LIB)/libmuninn.a
	@mkdir -p $$(@D)
	$$(call say,LINK)
	$$(Q)$$(CC) $$(LDFLAGS) -fsanitize=fuzzer -o $$@ $$^ $$(LDLIBS) -liscsi -linih -lsystemd
endef
$(foreach t,$(FUZZ_TARGETS),$(eval $(call FUZZ_RULE,$(t))))

$(LIB)/libfuzz.a: $(FUZZ_SRC:%.c=$(OBJ)/%.o)
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) rcs $@ $^

# Many inputs without learning from them: gcc's, plain or with sanitizers.
$(BIN)/fuzz-many: $(OBJ)/tests/fuzz/many/main.o $(LIB)/libfuzz.a $(LIB)/libosdclient.a $(LIB)/libdaemon.a $(LIB)/libmuninn.a
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) -liscsi -linih -lsystemd

.PHONY: fuzzers
fuzzers: $(FUZZ_TARGETS:%=$(BIN)/fuzz-%)

# ---- what people type ----

.PHONY: help run check bootstrap lint bench bench-paper figures fuzz sanitize coverage deb install uninstall clean

help:
	@echo 'make all        everything, into build/'
	@echo 'make run        installs what is missing, builds, runs the target in the foreground'
	@echo '                PORT=3260  SIZE=8G (an existing device grows to it)  RUN_DIR=build/run (where its state is kept)'
	@echo 'make check      installs what is missing, builds, runs all tests; ONLY=text: those whose path holds it'
	@echo 'make check-vm   of them, those with a guest whose kernel attaches'
	@echo 'make check-deb  of them, that of the Debian packages'
	@echo 'make lint       formatting, clang-tidy, cppcheck, and a build by clang'
	@echo 'make sanitize   the tests under ASan + UBSan, the threaded ones under TSan'
	@echo 'make sim        the simulator: SECONDS=60 SEED=first PROFILE=all; build/bin/muninn-sim --help'
	@echo 'make soak       the record store against its model, ten million operations: ten minutes; SOAK=operations SEED=first;'
	@echo '                devices with a damaged NVRAM; and soak-history, soak-power, soak-attack, soak-disk, soak-torture, soak-fsck'
	@echo 'make soak-torture a served unit under kill -9, failing hosts and lost connections: SOAK_SECONDS=600 SEED=N'
	@echo 'make soak-history the engine against the model of full history: SEEDS=20 SEED=first STEPS=30000 (of each of eight tests)'
	@echo 'make soak-attack an intruder against locked history: SEEDS=20 SEED=first STEPS=30000 (of each of four devices)'
	@echo 'make soak-disk  disks against their models: SEEDS=20 SEED=first STEPS=30000, and served: OPERATIONS=100000'
	@echo 'make soak-fsck  damaged devices, examined and salvaged: DAMAGED=20000 SEED=first'
	@echo 'make soak-power the engine against its model while the power fails: SEEDS=20 SEED=first STEPS=30000 (of each of three tests)'
	@echo 'make analyze    the analysers of gcc and clang over the sources of the product'
	@echo 'make valgrind   unit tests under memcheck; ONLY=text: those whose path holds it'
	@echo 'make mutants    faults put into nand/, engine/, osd/security*: which ones no test notices; MUTANTS=--help'
	@echo 'make coverage   line coverage of nand/, engine/ and osd/ by their unit tests'
	@echo 'make coverage-fuzz line coverage of osd/ by the sequences of commands that the fuzzer keeps'
	@echo 'make install    into DESTDIR: PREFIX=/usr/local, the module where tgtd looks for it; make uninstall'
	@echo 'make clean      removes build/, the device of `make run` included'
	@echo 'V=1 behind any of them shows the commands'
	@echo 'make bench      what the engine costs: a table, and build/bench/muninn-run.json'
	@echo 'make bench-nand the emulated NAND beside memcpy and fio: build/bench/muninn-nand.json; BENCH_NAND=--full'
	@echo 'make bench-iscsi a served unit beside stock tgtd and fio: build/bench/muninn-iscsi.json; QUICK=1; BENCH_ISCSI=--help'
	@echo 'make bench-peers the record store beside RocksDB, LevelDB, LMDB: build/bench/muninn-peers.json; QUICK=1; BENCH_PEERS=--help'
	@echo 'make bench-import directory trees beside tar and borg: build/bench/muninn-import.json; BENCH_IMPORT=--help'
	@echo 'make bench-history snapshots, rollbacks, old versions: build/bench/muninn-history.json'
	@echo 'make bench-disk-history the same of a disk: build/bench/muninn-disk-history.json'
	@echo 'make bench-open a full device of 64 GiB is opened behind a crash: build/bench/muninn-open.json'
	@echo 'make bench-hold how long each command holds up the others: build/bench/muninn-hold.json'
	@echo 'make bench-threads threads that call one engine: build/bench/muninn-threads.json'
	@echo 'make bench-list LIST of a million objects and members: build/bench/muninn-list.json'
	@echo "make bench-paper the paper's experiments, its numbers beside ours: build/bench/muninn-paper.json"
	@echo '                QUICK=1: a minute, with 2 million pairs in place of 50 million; BENCH_PAPER="--only 6.4": a section'
	@echo 'make bench-scale look-ups and inserts on larger and larger devices: build/bench/muninn-scale.json;'
	@echo '                SCALE=256G:200000000 takes 7 GB of memory, SCALE=1T:500000000 19.6 GB with ribbon'
	@echo 'make figures    draws docs/figures/ from build/bench/muninn-paper.json; of quick ones FIGURES=build/bench;'
	@echo '                UPDATE=1: only the sections that these results have'
	@echo 'make fuzz       fuzzes the target, the client and the formats: SECONDS=60 (of each), FUZZ=osd|disk|wire|client|flash|pdu'
	@echo 'make fuzz-many  the same without learning, many times as fast, for counts: SECONDS=60, FUZZ=pdu'
	@echo 'make fuzz-pdu   sessions of mutated PDUs against a real tgtd: SECONDS=60, SEED=N'
	@echo 'make deb        Debian packages of the service, of the client library, and of muninn-bench: build/deb/'

bootstrap:
	@scripts/bootstrap

PORT ?= 3260
SIZE ?=
RUN_DIR ?= $(BUILD)/run
run: bootstrap
	+@$(SUBMAKE) all
	@exec $(BUILD)/bin/muninnd --defaults --state-dir $(RUN_DIR) --port $(PORT) $(if $(SIZE),--size $(SIZE))

ONLY ?=
RUN_TESTS := scripts/run-tests $(if $(ONLY),--only $(ONLY))
test_bins = $(patsubst tests/%.c,$(BUILD)/tests/$(1)/%,$(2))
INDEX_TESTS = $(addprefix bloom:,$(call test_bins,release,$(INDEX_TEST_SRC)) $(INDEX_E2E_TESTS))
SANITIZED_TESTS = $(call test_bins,asan,$(filter-out $(PLAIN_TEST_SRC),$(TEST_SRC))) $(call test_bins,tsan,$(THREAD_TEST_SRC)) \
	$(SANITIZED_E2E_TESTS:%=asan:%)

.PHONY: sanitized-tests
sanitized-tests:
	+@$(SUBMAKE) $(BUILD)/bin/muninnd $(BUILD)/lib/bs_muninn.so
	+@$(SUBMAKE) VARIANT=asan all unit-tests
	+@$(SUBMAKE) VARIANT=tsan thread-tests

check: bootstrap bootstrap-guest bootstrap-container
	+@$(SUBMAKE) all unit-tests $(TORMENT)
	+@$(SUBMAKE) sanitized-tests
	+@$(SUBMAKE) build-deb
	@$(RUN_TESTS) $(call test_bins,release,$(TEST_SRC)) $(INDEX_TESTS) $(SANITIZED_TESTS) $(E2E_TESTS) \
		$(SCRIPT_TESTS)

# What a guest needs that attaches with a real kernel. Its tests say so where it can't be had.
.PHONY: bootstrap-guest check-vm
bootstrap-guest: bootstrap
	@scripts/bootstrap guest || echo 'tests with a guest will be SKIPPED'

# What the Debian packages are built with and tried in.
.PHONY: bootstrap-container check-deb
bootstrap-container: bootstrap
	@scripts/bootstrap container

check-deb: bootstrap-container
	+@$(SUBMAKE) build-deb
	@$(RUN_TESTS) tests/e2e/test_packages.py

check-vm: bootstrap bootstrap-guest
	+@$(SUBMAKE) all
	@$(RUN_TESTS) tests/e2e/test_guest.py

sanitize: bootstrap
	+@$(SUBMAKE) sanitized-tests
	@$(RUN_TESTS) $(SANITIZED_TESTS)

# Line coverage in percent that the three layers must reach together. The models' random runs are
# short here: what they reach they reach early.
COVERAGE_MIN ?= 90
COVERED := nand engine osd
COVERAGE_TESTS = $(call test_bins,coverage,$(filter $(COVERED:%=tests/%/%),$(TEST_SRC)))
coverage:
	@scripts/bootstrap lint
	+@$(SUBMAKE) VARIANT=coverage $(COVERAGE_TESTS)
	@find $(BUILD)/obj/coverage -name '*.gcda' -delete
	@MUNINN_OPERATIONS=4000 scripts/run-tests --time-limit 900 $(COVERAGE_TESTS)
	@echo "lines of $(COVERED) covered; at least $(COVERAGE_MIN) % are required"
	@gcovr --root . --object-directory $(BUILD)/obj/coverage $(COVERED:%=--filter '%/') --fail-under-line $(COVERAGE_MIN) \
		$(COVERED:%=$(BUILD)/obj/coverage/%)

# Lines of osd/ that the kept sequences of commands reach.
.PHONY: coverage-fuzz
coverage-fuzz: FUZZ_REGRESSIONS = $(call test_bins,coverage,tests/fuzz/test_regressions.c)
coverage-fuzz:
	@scripts/bootstrap lint
	+@$(SUBMAKE) VARIANT=coverage $(FUZZ_REGRESSIONS)
	@find $(BUILD)/obj/coverage -name '*.gcda' -delete
	@$(FUZZ_REGRESSIONS) '*sequence*'
	@gcovr --root . --object-directory $(BUILD)/obj/coverage --filter 'osd/' $(BUILD)/obj/coverage/osd

# Unit tests under memcheck, but for those that take longest and one that replaces malloc().
.PHONY: valgrind
NOT_UNDER_VALGRIND := test_power_cut test_store test_full_device test_merge test_hot_page test_space test_attack \
	test_history_cost test_objects test_history_rollback test_lock_time test_crash test_rooms test_idset test_damage \
	test_backend test_progress test_undo_room test_history_power_cut test_sealer test_command_limits test_allocations \
	test_security_memory test_memory
VALGRIND_TESTS = $(call test_bins,release,$(filter-out $(NOT_UNDER_VALGRIND:%=\%/%.c),$(filter \
	$(addprefix tests/,common/% wire/% $(COVERED:%=%/%)),$(TEST_SRC))))
valgrind:
	@scripts/bootstrap lint
	+@$(SUBMAKE) $(VALGRIND_TESTS)
	@MUNINN_OPERATIONS=100 $(RUN_TESTS) --under 'valgrind -q --error-exitcode=99 --leak-check=full \
		--show-leak-kinds=definite --errors-for-leak-kinds=definite' $(VALGRIND_TESTS)

# Small faults put into nand/, engine/ and osd/security*, one at a time: which of them no unit test
# notices. MUTANTS: options of scripts/mutants.
MUTANTS ?=
MUTANT_TESTS = $(filter $(COVERED:%=tests/%/%) tests/disk/%,$(TEST_SRC))
.PHONY: mutants
mutants: bootstrap
	+@$(SUBMAKE) VARIANT=coverage $(call test_bins,coverage,$(MUTANT_TESTS))
	+@$(SUBMAKE) SHARED=1 $(call test_bins,release-shared,$(MUTANT_TESTS))
	+@$(SUBMAKE) SHARED=1 VARIANT=asan $(call test_bins,asan-shared,$(MUTANT_TESTS))
	@scripts/mutants $(MUTANTS)

# How the core is compiled and linked, for scripts/mutants: four lines.
.PHONY: print-core
print-core:
	@echo '$(CC) $(CPPFLAGS) $(filter-out -MMD -MP -g -g1,$(CFLAGS))'
	@echo '$(CC) $(LDFLAGS) $(TEST_LDFLAGS) -shared -s -Wl,-soname,libmuninn.so'
	@echo '$(CORE_OBJ)'
	@echo '$(LDLIBS)'

# In makes of their own, which look up the tgt version after it was installed.
lint:
	@scripts/bootstrap lint
	+@$(SUBMAKE) lint-sources
	+@$(SUBMAKE) VARIANT=clang all unit-tests

.PHONY: lint-sources
lint-sources: $(TGT_DIR)/usr/tgtd.h $(TGT_IDENTITY)
	@TGT_DIR=$(TGT_DIR) scripts/lint

# The path-sensitive analysers of gcc and clang, over the product's sources.
.PHONY: analyze analyze-sources
analyze:
	@scripts/bootstrap lint
	+@$(SUBMAKE) analyze-sources

analyze-sources: $(TGT_DIR)/usr/tgtd.h $(TGT_IDENTITY)
	@TGT_DIR=$(TGT_DIR) scripts/analyze

# Manual pages and completions, out of what the programs say of themselves.
MANUALS := $(BUILD)/manuals
.PHONY: manuals
manuals: $(MANUALS)/made
$(MANUALS)/made: scripts/manuals conf/muninn.conf $(BIN)/muninnd $(BIN)/muninnctl $(BIN)/muninn-fsck $(BIN)/muninn-bench
	@scripts/manuals $(BIN) $(MANUALS)
	@touch $@

# For programs that speak to a target: what osd_client.h promises, and what that includes.
LIBRARY_OBJ := $(filter $(OBJ)/common/% $(OBJ)/wire/%,$(CORE_OBJ)) $(CLIENT_OBJ)
HEADERS := $(addprefix client/,osd_client.h session.h iscsi_pdu.h transfer.h tree.h manifest.h) common/error.h \
	$(addprefix wire/,vendor.h wire.h standard.h)
$(LIB)/libmuninn-client.a: $(LIBRARY_OBJ)
	@mkdir -p $(@D)
	@rm -f $@
	$(call say,AR)
	$(Q)$(AR) rcs $@ $^

PREFIX ?= /usr/local
MODULE_DIR := /usr/lib/tgt/backing-store
UNIT_DIR := /lib/systemd/system
SYSUSERS_DIR := /usr/lib/sysusers.d
MAN_DIR := $(PREFIX)/share/man
INSTALL := install -D -m
# Where Debian's zsh looks: for what packages bring, and below /usr/local.
ZSH_DIR := $(PREFIX)/share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
VERSION := $(shell sed -n 's/.*MUNINN_VERSION "\(.*\)"/\1/p' common/version.h)
# Where the service's files go: from=mode:to.
INSTALLED := $(BIN)/muninnd=755:$(PREFIX)/sbin/muninnd $(BIN)/muninn-fsck=755:$(PREFIX)/sbin/muninn-fsck \
	$(BIN)/muninnctl=755:$(PREFIX)/bin/muninnctl $(LIB)/bs_muninn.so=644:$(MODULE_DIR)/bs_muninn.so \
	$(foreach page,muninnctl.1 muninn.conf.5 muninnd.8 muninn-fsck.8,$(MANUALS)/$(page)=644:$(MAN_DIR)/man$(lastword $(subst ., ,$(page)))/$(page)) \
	$(MANUALS)/muninnctl.bash=644:$(PREFIX)/share/bash-completion/completions/muninnctl \
	$(MANUALS)/_muninnctl=644:$(ZSH_DIR)/_muninnctl \
	conf/muninn.sysusers=644:$(SYSUSERS_DIR)/muninn.conf \
	$(foreach example,alerts.yml dashboard.json,conf/$(example)=644:$(PREFIX)/share/doc/muninn/examples/$(example))
INSTALLED_DEV := $(LIB)/libmuninn-client.a=644:$(PREFIX)/lib/libmuninn-client.a \
	$(foreach header,$(HEADERS),$(header)=644:$(PREFIX)/include/muninn/$(header))
INSTALLED_BENCH := $(BIN)/muninn-bench=755:$(PREFIX)/bin/muninn-bench \
	$(MANUALS)/muninn-bench.1=644:$(MAN_DIR)/man1/muninn-bench.1 \
	$(foreach peer,$(PEER_LIBS),$(peer)=644:$(PREFIX)/lib/muninn/$(notdir $(peer)))
install_all = $(foreach file,$(1),$(INSTALL) $(firstword $(subst :, ,$(lastword $(subst =, ,$(file))))) \
	$(firstword $(subst =, ,$(file))) $(DESTDIR)$(lastword $(subst :, ,$(file))) &&) true

# A bare machine has make, but perhaps nothing else that a build needs.
.PHONY: tools
tools:
	@command -v $(firstword $(CC)) >/dev/null && command -v python3 >/dev/null && [ -e $(TGTD) ] && \
		$(CC) -E -include ini.h -include systemd/sd-daemon.h -include isa-l.h -include liburing.h -include openssl/evp.h \
		-include iscsi/iscsi.h -include jansson.h -include microhttpd.h -include xxhash.h -include jemalloc/jemalloc.h - </dev/null >/dev/null 2>&1 || \
		{ echo 'what a build needs is not all here: scripts/bootstrap installs it' >&2; exit 1; }

.PHONY: install-dev install-bench
install: tools
	+@$(SUBMAKE) all manuals
	@$(call install_all,$(INSTALLED))
	@[ -e $(DESTDIR)/etc/muninn/muninn.conf ] || install -D -m 640 conf/muninn.conf $(DESTDIR)/etc/muninn/muninn.conf
	@install -d -m 755 $(DESTDIR)$(UNIT_DIR)
	@sed 's|@PREFIX@|$(PREFIX)|' conf/muninn.service >$(DESTDIR)$(UNIT_DIR)/muninn.service
	@echo 'installed; docs/how-to/install.md says what comes next'

install-dev: tools
	+@$(SUBMAKE) $(LIB)/libmuninn-client.a
	@$(call install_all,$(INSTALLED_DEV))
	@install -d -m 755 $(DESTDIR)$(PREFIX)/lib/pkgconfig
	@sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' client/muninn-client.pc.in >$(DESTDIR)$(PREFIX)/lib/pkgconfig/muninn-client.pc

install-bench: tools
	+@$(SUBMAKE) $(BIN)/muninn-bench $(PEER_LIBS) manuals
	@$(call install_all,$(INSTALLED_BENCH))

# Leaves the configuration, the devices, and the user whose they are.
uninstall:
	rm -f $(foreach file,$(INSTALLED) $(INSTALLED_DEV) $(INSTALLED_BENCH),$(DESTDIR)$(lastword $(subst :, ,$(file)))) \
		$(DESTDIR)$(UNIT_DIR)/muninn.service $(DESTDIR)$(PREFIX)/lib/pkgconfig/muninn-client.pc

BENCH_RUN ?= --nand headers --size 8G --rows 16 --pairs 5000000 --op insert,lookup,lookup,lookup,absent,update,mixed:0.5 \
	--dist random,random,newest,oldest,random,random,random
bench: bootstrap
	+@$(SUBMAKE) $(BIN)/muninn-bench
	@mkdir -p $(BUILD)/bench
	@$(BIN)/muninn-bench run $(BENCH_RUN) >$(BUILD)/bench/muninn-run.json

# A full device of 64 GiB is opened behind a crash: page reads, seconds. BENCH_OPEN: its options.
.PHONY: bench-open
bench-open: bootstrap
	+@$(SUBMAKE) $(BIN)/muninn-bench
	@mkdir -p $(BUILD)/bench
	@$(BIN)/muninn-bench run --nand headers --size 64G --pairs 50000000 --timing none --time real --op insert,open,lookup \
		$(BENCH_OPEN) >$(BUILD)/bench/muninn-open.json

QUICK ?=
# The emulated NAND beside memcpy and fio; its image is made, and removed, in build/bench/.
# BENCH_NAND: its options.
.PHONY: bench-nand
bench-nand:
	@scripts/bootstrap bench
	+@$(SUBMAKE) $(BIN)/muninn-bench
	@mkdir -p $(BUILD)/bench
	@$(BIN)/muninn-bench nand --file $(BUILD)/bench/nand.image $(BENCH_NAND) >$(BUILD)/bench/muninn-nand.json

# Served units beside stock tgtd and fio; images in build/bench/ and /dev/shm while it runs.
# BENCH_ISCSI: its options.
.PHONY: bench-iscsi
bench-iscsi:
	@scripts/bootstrap bench
	@scripts/bootstrap figures
	+@$(SUBMAKE) all
	@mkdir -p $(BUILD)/bench
	@$(BIN)/muninn-bench iscsi --drive $(BUILD)/bench $(if $(QUICK),--quick) $(BENCH_ISCSI) \
		>$(BUILD)/bench/muninn-iscsi.json; code=$$?; \
	! grep -qs read-1M-random-4x32 $(BUILD)/bench/muninn-iscsi.json || \
		scripts/figures-muninn --iscsi $(BUILD)/bench/muninn-iscsi.json $(BUILD)/bench; exit $$code

# The record store beside RocksDB, LevelDB and LMDB; files in build/bench/ while it runs.
# BENCH_PEERS: its options.
.PHONY: bench-peers
bench-peers: bootstrap
	+@$(SUBMAKE) all
	@mkdir -p $(BUILD)/bench
	@$(BIN)/muninn-bench peers --folder $(BUILD)/bench $(if $(QUICK),--quick) $(BENCH_PEERS) \
		>$(BUILD)/bench/muninn-peers.json

# Directory trees beside tar and borg; all in /dev/shm while it runs. BENCH_IMPORT: its options.
.PHONY: bench-import
bench-import:
	@scripts/bootstrap bench
	+@$(SUBMAKE) all
	@mkdir -p $(BUILD)/bench
	@$(BIN)/muninn-bench import --folder /dev/shm $(BENCH_IMPORT) >$(BUILD)/bench/muninn-import.json

# Snapshots, rollbacks and old versions by the device's counters. BENCH_HISTORY: its options.
.PHONY: bench-history
bench-history: bootstrap
	+@$(SUBMAKE) $(BIN)/muninn-bench
	@mkdir -p $(BUILD)/bench
	@$(BIN)/muninn-bench history $(BENCH_HISTORY) >$(BUILD)/bench/muninn-history.json

# The history of a disk, in space and time. BENCH_DISK_HISTORY: its options.
.PHONY: bench-disk-history
bench-disk-history: bootstrap
	+@$(SUBMAKE) $(BIN)/muninn-bench
	@mkdir -p $(BUILD)/bench
	@$(BIN)/muninn-bench disk-history $(BENCH_DISK_HISTORY) >$(BUILD)/bench/muninn-disk-history.json

# Everything below the service, with all that can go wrong, one seed after the other.
PROFILE ?= all
.PHONY: sim
sim: bootstrap
	+@$(SUBMAKE) $(BIN)/muninn-sim
	@$(BIN)/muninn-sim --profile $(PROFILE) --seed $(or $(SEED),1) --seconds $(SECONDS)

.PHONY: soak
soak: bootstrap soak-history soak-power soak-attack soak-disk soak-torture soak-fsck
	+@$(SUBMAKE) $(BUILD)/tests/release/engine/muninn/test_merge
	@MUNINN_SOAK=$(or $(SOAK),10000000) MUNINN_SEED=$(or $(SEED),1000) \
		$(BUILD)/tests/release/engine/muninn/test_merge
	+@$(SUBMAKE) $(BUILD)/tests/release/engine/muninn/test_damage
	@MUNINN_DAMAGED=20000 MUNINN_SEED=$(or $(SEED),1000) \
		$(BUILD)/tests/release/engine/muninn/test_damage

# Random runs against the model of full history, one seed after the other: 4.8 million steps, with
# power cuts 1.8 million.
SEEDS ?= 20
OPERATIONS ?= 100000
STEPS ?= 30000
.PHONY: soak-history
soak-history: bootstrap
	+@$(SUBMAKE) $(TESTBIN)/engine/model/test_model
	@scripts/soak-model $(TESTBIN)/engine/model/test_model $(or $(SEED),1000) $(SEEDS) $(STEPS)

.PHONY: soak-power
soak-power: bootstrap
	+@$(SUBMAKE) $(TESTBIN)/engine/model/test_model_power
	@scripts/soak-model $(TESTBIN)/engine/model/test_model_power $(or $(SEED),1000) $(SEEDS) $(STEPS)

.PHONY: soak-attack
soak-attack: bootstrap
	+@$(SUBMAKE) $(TESTBIN)/osd/history/test_attack
	@scripts/soak-model $(TESTBIN)/osd/history/test_attack $(or $(SEED),1000) $(SEEDS) $(STEPS)

# Disks against their models: in this process, and served, with kills of the daemon.
.PHONY: soak-disk
soak-disk: bootstrap
	+@$(SUBMAKE) all $(TESTBIN)/disk/test_model
	@for seed in $$(seq $(or $(SEED),1000) $$(($(or $(SEED),1000) + $(SEEDS) - 1))); do \
		MUNINN_SEED=$$seed MUNINN_OPERATIONS=$(STEPS) $(TESTBIN)/disk/test_model || exit 1; \
	done
	@E2E_OPERATIONS=$(OPERATIONS) $(if $(SEED),E2E_SEED=$(SEED)) python3 tests/e2e/test_disk_model.py

# The service, its host and its initiators are killed, stopped, cut off, filled up: SOAK_SECONDS in
# all worlds. SOAK_TORTURE: other options of the program.
SOAK_SECONDS ?= 600
.PHONY: soak-torture
soak-torture: bootstrap
	+@$(SUBMAKE) all $(TORMENT)
	@tests/e2e/torture.py --seconds $(SOAK_SECONDS) $(if $(SEED),--seed $(SEED)) $(SOAK_TORTURE)

# Damaged devices: opened, examined, salvaged, and compared with the model.
.PHONY: soak-fsck
soak-fsck: bootstrap
	+@$(SUBMAKE) $(TESTBIN)/engine/model/test_model_damage
	@MUNINN_DAMAGED=$(or $(DAMAGED),20000) MUNINN_SEED=$(or $(SEED),1000) \
		$(TESTBIN)/engine/model/test_model_damage

# How long each command holds up the others. BENCH_HOLD: its options.
.PHONY: bench-hold
bench-hold: bootstrap
	+@$(SUBMAKE) $(BIN)/muninn-bench
	@mkdir -p $(BUILD)/bench
	@$(BIN)/muninn-bench hold $(BENCH_HOLD) >$(BUILD)/bench/muninn-hold.json

# Threads that call one engine. BENCH_THREADS: its options.
.PHONY: bench-threads
bench-threads: bootstrap
	+@$(SUBMAKE) $(BIN)/muninn-bench
	@mkdir -p $(BUILD)/bench
	@$(BIN)/muninn-bench threads $(BENCH_THREADS) >$(BUILD)/bench/muninn-threads.json

# LIST and LIST COLLECTION of a million, over the place in the list. BENCH_LIST: its options.
.PHONY: bench-list
bench-list: bootstrap
	+@$(SUBMAKE) $(BIN)/muninn-bench
	@mkdir -p $(BUILD)/bench
	@$(BIN)/muninn-bench list $(BENCH_LIST) >$(BUILD)/bench/muninn-list.json

# What a look-up and an insert cost on larger and larger devices, with each index. SCALE: sizes and
# pairs; 256G:200000000 takes 7 GB of memory and some ten minutes, 1T:500000000 19.6 GB with ribbon.
.PHONY: bench-scale
SCALE ?= 2G:1000000 16G:10000000 64G:50000000
bench-scale: bootstrap
	+@$(SUBMAKE) $(BIN)/muninn-bench
	@mkdir -p $(BUILD)/bench
	@for index in bloom ribbon; do for scale in $(SCALE); do \
		$(BIN)/muninn-bench run --index $$index --nand headers --size $${scale%:*} \
			--pairs $${scale#*:} --op insert,lookup,lookup,absent --ops 300000 \
			--dist sequential,random,oldest,random || exit; \
	done; done >$(BUILD)/bench/muninn-scale.json

# The paper's experiments, its numbers beside ours. BENCH_PAPER: its options, as --only 6.4.
PAPER_RESULTS := $(BUILD)/bench/muninn-paper.json
bench-paper: bootstrap
	+@$(SUBMAKE) $(BIN)/muninn-bench
	@mkdir -p $(BUILD)/bench
	@$(BIN)/muninn-bench paper $(if $(QUICK),--quick) --output $(PAPER_RESULTS) \
		--commit "$$(git describe --always --dirty 2>/dev/null || echo unknown)" $(BENCH_PAPER)

# Results of another scale do not replace figures of full scale: FIGURES=build/bench. UPDATE=1: only
# the sections that the results have, as of BENCH_PAPER="--only 6.4".
FIGURES ?= docs/figures
figures:
	@scripts/bootstrap figures
	@scripts/figures-muninn $(if $(UPDATE),--update) $(PAPER_RESULTS) $(FIGURES)

SECONDS ?= 60
FUZZ ?= $(FUZZ_TARGETS)
fuzz:
	@scripts/bootstrap fuzz
	+@$(SUBMAKE) VARIANT=fuzz $(FUZZ:%=$(BUILD)/fuzz/bin/fuzz-%)
	@tests/fuzz/run --seconds $(SECONDS) $(FUZZ)

# Inputs of a target without learning from them, many times as fast as `make fuzz`.
.PHONY: fuzz-many
fuzz-many: bootstrap
	+@$(SUBMAKE) VARIANT=asan $(BUILD)/asan/bin/fuzz-many
	@tests/fuzz/run --many --seconds $(SECONDS) $(FUZZ)

# Sessions of mutated PDUs against a real tgtd behind the guard. SEED=N: those of a seed.
.PHONY: fuzz-pdu
fuzz-pdu: bootstrap
	+@$(SUBMAKE) all
	@tests/e2e/pdu_sessions.py --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

# Debian packages, in build/deb/. What was built stays there, so that the next time is short.
DEB := $(BUILD)/deb
DEB_TREE := $(DEB)/muninn-$(VERSION)
deb:
	@scripts/bootstrap deb
	+@$(SUBMAKE) build-deb

.PHONY: build-deb
build-deb: $(TGT_DIR)/usr/tgtd.h
	@[ "$$(dpkg-parsechangelog -S Version)" = $(VERSION) ] || \
		{ echo 'debian/changelog begins with another version than common/version.h has' >&2; exit 1; }
	@rm -f $(DEB)/*.deb
	@mkdir -p $(DEB_TREE)
	@find $(DEB_TREE) -mindepth 1 -maxdepth 1 ! -name build -exec rm -rf {} +
	@tar --exclude=./build --exclude=./.git -c . | tar -x -C $(DEB_TREE)
	@cd $(DEB_TREE) && TGT_SRC=$(abspath $(TGT_DIR)) CC="$(CC)" MAKEFLAGS= DEB_BUILD_OPTIONS="nocheck parallel=$(JOBS) $(DEB_BUILD_OPTIONS)" \
		dpkg-buildpackage -b -nc -us -uc >../build.log 2>&1 || { tail -n 40 ../build.log >&2; exit 1; }
	@ls $(DEB)/*.deb

clean:
	rm -rf $(BUILD)

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)
