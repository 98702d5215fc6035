package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Lock takes an advisory lock on a file of the cache that the kernel drops when this process
// ends, however it ends. It waits for another holder and says so.
func Lock(ctx context.Context, name string, progress io.Writer) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the cache: %w", err)
	}
	began, said := time.Now(), time.Time{}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock the cache: %s: %w", name, err)
		}
		if time.Since(said) >= progressEvery {
			said = time.Now()
			fmt.Fprintf(progress, "another process builds what belongs to %s, waiting for it (%s so far)\n", filepath.Base(name), time.Since(began).Round(time.Second))
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("lock the cache: %w", ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
