//go:build !windows

package install

import (
	"io/fs"
	"syscall"
)

// groupOf is the number of a file's group.
func groupOf(st fs.FileInfo) int {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(s.Gid)
	}
	return -1
}
