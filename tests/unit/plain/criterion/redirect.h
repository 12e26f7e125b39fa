/* See criterion/criterion.h. What a test writes is not kept from anybody: it may say what it likes.
 */
#pragma once

#define cr_redirect_stderr() ((void)0)
