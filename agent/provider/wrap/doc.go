// Package wrap makes a Provider of another one, or of several, and adds one concern each:
// Timeout limits every call, Count feeds metrics, Deferred makes its provider on the
// first call that can, WriteAhead records a change before the cloud is asked for it, and
// Join makes one provider of several clouds. Each hands provider.Witness through.
//
// It refuses to retry (the next round is the retry), to cache (Join keeps the groups that
// a cloud last listed, and returns them only as Stale), and to write to a cloud on its own.
package wrap
