//go:build unix && !linux

package controlplane

import "syscall"

// dieWithParent has no counterpart outside Linux: there, a killed test leaves its
// children to the person who killed it.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
