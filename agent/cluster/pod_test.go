package cluster

import (
	"testing"
	"unsafe"
)

// TestPodIsSmall: a cluster of 5,000 nodes has 150,000 of them, and 30 in a row fit the
// allocator's size of 6,784 bytes with little left over.
func TestPodIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(Pod{}); n > 224 {
		t.Errorf("a Pod takes %d bytes, want at most 224: put a new small field beside the others of its size", n)
	}
}
