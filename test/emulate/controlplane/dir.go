package controlplane

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	tempPrefix = "autoscaler-controlplane-"
	// ownerFile marks a directory as ours. Its owner holds a lock on it that the
	// kernel drops with the process, so a dead owner is told from a living one.
	ownerFile = "owner.lock"
)

// ours are the entries that a control plane, or the command for people, makes in its
// directory.
var ours = []string{"pki", "conf", "etcd", "log", "kubeadm.yaml", "control.sock"}

// claimDir takes the directory for this process and empties what a dead one left.
func (cp *ControlPlane) claimDir() error {
	var err error
	if cp.opts.Dir == "" {
		sweep(os.TempDir())
		cp.temp = true
		if cp.dir, err = os.MkdirTemp("", tempPrefix); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	} else if cp.dir, err = filepath.Abs(cp.opts.Dir); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if err := os.MkdirAll(cp.dir, 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	owner := filepath.Join(cp.dir, ownerFile)
	if _, err := os.Stat(owner); errors.Is(err, os.ErrNotExist) {
		if entries, err := os.ReadDir(cp.dir); err != nil || len(entries) > 0 {
			return fmt.Errorf("make directory: %s is not empty and not of a control plane: choose another", cp.dir)
		}
	}
	f, err := os.OpenFile(owner, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return fmt.Errorf("make directory: conflict: a control plane runs in %s: %w", cp.dir, err)
	}
	cp.owner = f
	for _, name := range ours {
		if err := os.RemoveAll(filepath.Join(cp.dir, name)); err != nil {
			return fmt.Errorf("empty directory: %w", err)
		}
	}
	for _, name := range []string{"pki", "conf", "log"} {
		if err := os.Mkdir(filepath.Join(cp.dir, name), 0o700); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	return nil
}

// sweep removes the temporary directories of processes that were killed before they
// could. One is removed only when its lock is free and older than a minute, so that
// a directory which is just being made is never taken.
func sweep(root string) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), tempPrefix) {
			continue
		}
		dir := filepath.Join(root, entry.Name())
		f, err := os.Open(filepath.Join(dir, ownerFile))
		if err != nil {
			continue
		}
		info, err := f.Stat()
		if err == nil && time.Since(info.ModTime()) > time.Minute &&
			syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(dir)
		}
		f.Close()
	}
}
