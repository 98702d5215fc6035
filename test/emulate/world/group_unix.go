//go:build unix

package world

import "syscall"

// ownGroup keeps a terminal's Ctrl-C from reaching the agent before the demo has
// told its story to the end.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
