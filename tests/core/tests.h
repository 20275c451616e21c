/// The headers that nearly every test includes. The Makefile has this file compiled once, ahead of the tests.

#include <gtest/gtest.h>

#include "call.h"
