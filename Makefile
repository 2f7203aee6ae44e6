# SPDX-License-Identifier: GPL-2.0-only WITH cryptsetup-OpenSSL-exception
# Muninn. `make help` lists the targets. Everything that is built goes to build/.

SHELL := /bin/bash
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

# Variants: release (what is installed), asan (ASan + UBSan), tsan, coverage, clang. One object tree for each.
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

WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wvla -Wmissing-prototypes -Werror
CPPFLAGS += -I. -D_GNU_SOURCE
CFLAGS ?= -O2 -g
CFLAGS += -std=gnu11 -fPIC -pthread -fno-strict-aliasing -MMD -MP $(WARNINGS)
LDFLAGS += -pthread
LDLIBS += -lisal -lxxhash

ifeq ($(VARIANT),asan)
CFLAGS += -O1 -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all -DMUNINN_DEBUG
LDFLAGS += -fsanitize=address,undefined
endif
ifeq ($(VARIANT),tsan)
CFLAGS += -O1 -fno-omit-frame-pointer -fsanitize=thread
LDFLAGS += -fsanitize=thread
endif
ifeq ($(VARIANT),coverage)
CFLAGS += -O0 --coverage
LDFLAGS += --coverage
endif
ifeq ($(VARIANT),clang)
CC := clang
endif

# ---- sources: by folder, so that a new file needs no line here ----

CORE_SRC := $(wildcard common/*.c nand/*.c engine/*.c engine/muninn/*.c osd/*.c)
CLIENT_SRC := $(wildcard client/*.c)
CTL_SRC := $(wildcard client/ctl/*.c)
CORE_OBJ := $(CORE_SRC:%.c=$(OBJ)/%.o)
CLIENT_OBJ := $(CLIENT_SRC:%.c=$(OBJ)/%.o)
CTL_OBJ := $(CTL_SRC:%.c=$(OBJ)/%.o)

# Each tests/FOLDER/test_*.c is a program; the folder's other .c files are linked into all of them.
TEST_SRC := $(wildcard tests/*/test_*.c)
TEST_BINS := $(TEST_SRC:tests/%.c=$(TESTBIN)/%)

.PHONY: all unit-tests
all: $(LIB)/libmuninn.a $(if $(CTL_SRC),$(BIN)/muninnctl)
unit-tests: $(TEST_BINS)

$(OBJ)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(LIB)/libmuninn.a: $(CORE_OBJ)
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^

$(LIB)/libosdclient.a: $(CLIENT_OBJ)
	@mkdir -p $(@D)
	@rm -f $@
	$(AR) rcs $@ $^

$(BIN)/muninnctl: $(CTL_OBJ) $(LIB)/libosdclient.a $(LIB)/libmuninn.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) -liscsi -ljansson -lcrypto

# The helpers of a test folder: its .c files that are not tests themselves.
test_helpers = $(filter-out $(dir $(1))test_%.c,$(wildcard $(dir $(1))*.c))
define TEST_RULE
$(TESTBIN)/$(1:tests/%.c=%): $(OBJ)/$(1:.c=.o) $(patsubst %.c,$(OBJ)/%.o,$(call test_helpers,$(1))) \
		$(if $(CLIENT_SRC),$(LIB)/libosdclient.a) $(LIB)/libmuninn.a
	@mkdir -p $$(@D)
	$$(CC) $$(LDFLAGS) -o $$@ $$^ $$(LDLIBS) -lcmocka -liscsi -ljansson -lcrypto
endef
$(foreach t,$(TEST_SRC),$(eval $(call TEST_RULE,$(t))))

-include $(shell find $(OBJ) -name '*.d' 2>/dev/null)
