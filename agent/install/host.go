package install

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

// ThisHost is the machine with its own tools. A dry run needs no more than the right to read.
func ThisHost(dry bool) (Host, error) {
	if os.Geteuid() != 0 && !dry {
		return Host{}, fmt.Errorf("it writes to /etc: run it with sudo, or add --dry-run: %w", fs.ErrPermission)
	}
	exe, err := os.Executable()
	if err == nil {
		exe, err = filepath.EvalSymlinks(exe)
	}
	if err != nil {
		return Host{}, fmt.Errorf("find this binary: %w", err)
	}
	return Host{Binary: exe, Run: execute, GroupID: func(name string) (int, bool) {
		g, err := user.LookupGroup(name)
		if err != nil {
			return 0, false
		}
		id, err := strconv.Atoi(g.Gid)
		return id, err == nil
	}}, nil
}
