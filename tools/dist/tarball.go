package main

import (
	"archive/tar"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// tarball packs the staged tree below one directory, for machines without a package
// manager and for those that build packages of their own.
func (b *build) tarball(stage, arch string) (err error) {
	path := b.name(arch, ".tar.gz")
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if closed := f.Close(); err == nil {
			err = closed
		}
	}()
	z, _ := gzip.NewWriterLevel(f, gzip.BestCompression)
	t := tar.NewWriter(z)
	top := strings.TrimSuffix(filepath.Base(path), ".tar.gz")
	err = filepath.WalkDir(stage, func(at string, d fs.DirEntry, err error) error { // in the order of names
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(stage, at)
		if err != nil {
			return err
		}
		return b.add(t, at, filepath.Join(top, rel), d)
	})
	if err != nil {
		return err
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

func (b *build) add(t *tar.Writer, at, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	header := &tar.Header{Name: name, Mode: int64(info.Mode().Perm()), ModTime: b.date, Typeflag: tar.TypeReg, Size: info.Size(), Uname: "root", Gname: "root"}
	if d.IsDir() {
		header.Name, header.Typeflag, header.Size = name+"/", tar.TypeDir, 0
	}
	if err := t.WriteHeader(header); err != nil || d.IsDir() {
		return err
	}
	f, err := os.Open(at)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(t, f)
	return err
}
