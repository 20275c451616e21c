/// What nearly every test includes: the Makefile has it compiled once, ahead of them.

#include <gtest/gtest.h>

#include "call.h"
