package flight

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Store keeps rounds as files, one a file, for who wants to know next week what
// happened last night. Only their owner can read them.
type Store struct {
	Dir   string
	Files int   // most files; 0 writes none
	Bytes int64 // most bytes of all files together
}

const (
	filePrefix = "round-"
	fileSuffix = ".json.gz"
)

// Write keeps one packed round under its time, and then removes the oldest files that
// are too many. Nothing is synced: a round that a power cut takes is no loss.
func (s Store) Write(at time.Time, packed []byte) error {
	if s.Files <= 0 {
		return nil
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return fmt.Errorf("keep round: %w", err)
	}
	path := filepath.Join(s.Dir, filePrefix+at.UTC().Format("20060102T150405.000Z")+fileSuffix)
	if err := os.WriteFile(path+".new", packed, 0o600); err != nil {
		return fmt.Errorf("keep round: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("keep round: %w", err)
	}
	return s.prune()
}

// prune removes the oldest files beyond the bounds. Files of other kinds are not touched.
func (s Store) prune() error {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return fmt.Errorf("prune rounds: %w", err)
	}
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool {
		return !strings.HasPrefix(e.Name(), filePrefix) || !strings.HasSuffix(e.Name(), fileSuffix)
	})
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(b.Name(), a.Name()) })
	var bytes int64
	for i, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // gone meanwhile
		}
		if bytes += info.Size(); i == 0 || i < s.Files && bytes <= s.Bytes {
			continue
		}
		if err := os.Remove(filepath.Join(s.Dir, e.Name())); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("prune rounds: %w", err)
		}
	}
	return nil
}
