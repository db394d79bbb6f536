/* Named crash points between two steps, compiled in only with -Dfailpoints=true.
 *
 * PAYONCE_FAILPOINT=name[:n][=sleep_ms] makes the n-th passage (default 1) of `name` kill the process with SIGKILL, or
 * sleep there. Several are separated by commas. In other builds a failpoint is nothing at all. */
#ifndef BASE_FAILPOINT_H
#define BASE_FAILPOINT_H

#ifdef PAYONCE_FAILPOINTS
void failpoint_hit(const char *name);
#define FAILPOINT(name) failpoint_hit(name)
#else
#define FAILPOINT(name) ((void)0)
#endif

#endif
