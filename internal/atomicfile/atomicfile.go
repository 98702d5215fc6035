// Package atomicfile writes small files so that a reader, a crash or a full disk
// sees the old bytes or the new ones and never half of either.
//
// It refuses to write through anything but a regular file (or a symbolic link to
// one, which it follows and keeps), to widen a file's mode, to touch a file
// whose bytes and mode are already right, and to remove anything but what a crash left
// of its own writing.
package atomicfile

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// maxLinks is how many symbolic links are followed before a loop is assumed.
const maxLinks = 16

// Write makes path hold data with exactly the permission bits mode, and tells
// whether it had to change anything. The new bytes are written to a temporary file
// in the target's own directory, made private before the first byte, synced,
// renamed over the target, and the directory is synced. If path is a symbolic link
// the file it leads to is replaced and the link stays (/etc/worker.env may lead to
// the only directory that an unprivileged agent may write to).
func Write(path string, data []byte, mode fs.FileMode) (changed bool, err error) {
	target, err := resolve(path)
	if err != nil {
		return false, fmt.Errorf("write %s: %w", path, err)
	}
	same, err := holds(target, data, mode)
	if err != nil {
		return false, fmt.Errorf("write %s: %w", path, err)
	}
	if same {
		return false, nil
	}
	if err := replace(target, data, mode); err != nil {
		return false, fmt.Errorf("write %s: %w", path, err)
	}
	return true, nil
}

// resolve follows symbolic links, also one that dangles: the link may be installed
// before the first publication.
func resolve(path string) (string, error) {
	path, info, err := follow(path)
	if err == nil && info != nil && !info.Mode().IsRegular() {
		if info.IsDir() {
			return "", errors.New("it is a directory: name a file")
		}
		return "", fmt.Errorf("%s is not a regular file (%s): name another", path, info.Mode().Type())
	}
	return path, err
}

// follow returns what symbolic links lead to; nil info: there is nothing yet.
func follow(path string) (string, fs.FileInfo, error) {
	for range maxLinks {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return path, nil, nil
		}
		if err != nil {
			return "", nil, err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			return path, info, nil
		}
		if err := trusted(path, info); err != nil {
			return "", nil, err
		}
		next, err := os.Readlink(path)
		if err != nil {
			return "", nil, err
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(filepath.Dir(path), next)
		}
		path = next
	}
	return "", nil, fmt.Errorf("more than %d symbolic links", maxLinks)
}

// trusted refuses a symbolic link that somebody else has put into a directory where everybody may write. The
// kernel follows none either (fs.protected_symlinks), but Write resolves links itself: whoever may write /tmp
// could have the published token written to a place of his.
func trusted(link string, info fs.FileInfo) error {
	dir, err := os.Stat(filepath.Dir(link))
	if err != nil {
		return err
	}
	if by, in := owner(info), owner(dir); !follows(by, in, uint32(os.Geteuid()), dir.Mode()) {
		return fmt.Errorf("the symbolic link %s is of user %d, in a directory where everybody may write: remove it, or name another file", link, by)
	}
	return nil
}

// follows tells whether a link of a user is followed in a directory of another one, by a process of self.
func follows(by, dir, self uint32, mode fs.FileMode) bool {
	return by == 0 || by == self || by == dir || mode.Perm()&0o002 == 0
}

func owner(info fs.FileInfo) uint32 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Uid
	}
	return 0
}

func holds(target string, data []byte, mode fs.FileMode) (bool, error) {
	info, err := os.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if info.Mode().Perm() != mode.Perm() || info.Size() != int64(len(data)) {
		return false, nil
	}
	old, err := os.ReadFile(target)
	if err != nil {
		// A file that cannot be read can still be replaced.
		return false, nil
	}
	return bytes.Equal(old, data), nil
}

func replace(target string, data []byte, mode fs.FileMode) (err error) {
	writing.RLock()
	defer writing.RUnlock()
	dir := filepath.Dir(target)
	// CreateTemp makes the file 0600, so the bytes are private from the first one.
	tmp, err := os.CreateTemp(dir, "."+filepath.Base(target)+".*")
	if err != nil {
		// The temporary name is another each time: equal errors must read equal.
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			return fmt.Errorf("make a file in %s: %w", dir, at.Err)
		}
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreClosed(tmp.Close()), ignoreMissing(os.Remove(tmp.Name())))
		}
	}()
	if err := tmp.Chmod(mode.Perm()); err != nil {
		return err
	}
	if _, err := tmp.Write(data); err != nil {
		return err
	}
	if err := tmp.Sync(); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), target); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes the rename itself durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func ignoreClosed(err error) error {
	if errors.Is(err, fs.ErrClosed) {
		return nil
	}
	return err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
