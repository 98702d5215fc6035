// Package services tests csrsigner, nodecleaner and bootstrap on a real control
// plane. It refuses to fake the API server; only the cloud's inventory is a value
// of the test.
package services
