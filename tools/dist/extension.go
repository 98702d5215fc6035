package main

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/squashfs"
)

// extension makes a system extension (systemd-sysext) for Flatcar, whose /usr cannot be
// written: a squashfs image of /usr. ID=_any, because a static binary runs anywhere.
func (b *build) extension(stage, arch string) error {
	release := "ID=_any\nARCHITECTURE=" + map[string]string{"amd64": "x86-64", "arm64": "arm64"}[arch] + "\nEXTENSION_RELOAD_MANAGER=1\n"
	path := b.name(arch, ".sysext.raw")
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	storage, err := file.CreateFromPath(path, 1<<30)
	if err != nil {
		return err
	}
	defer storage.Close()
	const block = 128 << 10
	image, err := squashfs.Create(storage, 1<<30, 0, block)
	if err != nil {
		return err
	}
	// The image's own name is that of the extension: systemd-sysext asks for it.
	if err := b.put(stage, "usr/lib/extension-release.d/extension-release.autoscaler-agent", []byte(release), 0o644); err != nil {
		return err
	}
	if err := b.stamp(stage); err != nil {
		return err
	}
	if err := b.fill(image.Workspace(), filepath.Join(stage, "usr")); err != nil {
		return err
	}
	uid, gid := uint32(0), uint32(0)
	if err := image.Finalize(squashfs.FinalizeOptions{Compression: &squashfs.CompressorGzip{CompressionLevel: 9}, FileUID: &uid, FileGID: &gid}); err != nil {
		return fmt.Errorf("squashfs: %w", err)
	}
	return b.dated(path)
}

// fill copies the tree into the workspace with its modes and times.
func (b *build) fill(workspace, usr string) error {
	err := filepath.WalkDir(usr, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(at)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		return b.put(workspace, "usr"+strings.TrimPrefix(at, usr), data, info.Mode().Perm())
	})
	if err != nil {
		return err
	}
	return b.stamp(workspace)
}

// dated writes the commit's time over the time of building in the superblock (bytes 8 to
// 11, mkfs_time of the squashfs format 4.0), and cuts the file at the image's end
// (bytes 40 to 47, bytes_used), padded to 4 KiB as mksquashfs does.
func (b *build) dated(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var head [96]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return err
	}
	if string(head[:4]) != "hsqs" {
		return fmt.Errorf("%s is no squashfs image", path)
	}
	binary.LittleEndian.PutUint32(head[8:], uint32(b.date.Unix()))
	if _, err := f.WriteAt(head[:], 0); err != nil {
		return err
	}
	used := int64(binary.LittleEndian.Uint64(head[40:]))
	if err := f.Truncate((used + 4095) &^ 4095); err != nil {
		return err
	}
	return f.Close()
}
