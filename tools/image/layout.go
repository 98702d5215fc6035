package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
)

const (
	indexType    = "application/vnd.oci.image.index.v1+json"
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Platform    map[string]string `json:"platform,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// file is one file of an image.
type file struct {
	Name string // without the first slash
	Mode int64
	Data []byte
}

// variant is an image for one architecture.
type variant struct {
	Arch       string
	Files      []file
	Entrypoint string
	Cmd        []string
	User       string
}

// layout writes an archive in the layout of OCI. Equal input gives equal bytes: it has no times
// and no owners.
type layout struct {
	t    *tar.Writer
	seen map[string]bool
}

func (l *layout) add(name string, data []byte) error {
	if err := l.t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), Format: tar.FormatUSTAR}); err != nil {
		return err
	}
	_, err := l.t.Write(data)
	return err
}

func (l *layout) blob(kind string, data []byte) (descriptor, error) {
	sum := sha256.Sum256(data)
	digest := hex.EncodeToString(sum[:])
	d := descriptor{MediaType: kind, Digest: "sha256:" + digest, Size: int64(len(data))}
	if l.seen[digest] {
		return d, nil
	}
	l.seen[digest] = true
	return d, l.add("blobs/sha256/"+digest, data)
}

func (l *layout) object(kind string, v any) (descriptor, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return descriptor{}, err
	}
	return l.blob(kind, text)
}

// write puts one image of several architectures into an archive.
func write(to io.Writer, name string, variants []variant) error {
	l := &layout{t: tar.NewWriter(to), seen: map[string]bool{}}
	var manifests []descriptor
	for _, v := range variants {
		d, err := l.manifest(v)
		if err != nil {
			return err
		}
		d.Platform = map[string]string{"architecture": v.Arch, "os": "linux"}
		manifests = append(manifests, d)
	}
	whole, err := l.object(indexType, map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": manifests})
	if err != nil {
		return err
	}
	whole.Annotations = map[string]string{"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": indexType, "manifests": []descriptor{whole}})
	if err != nil {
		return err
	}
	if err := l.add("index.json", index); err != nil {
		return err
	}
	if err := l.add("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	return l.t.Close()
}

func (l *layout) manifest(v variant) (descriptor, error) {
	var tarball bytes.Buffer
	t := tar.NewWriter(&tarball)
	for _, f := range v.Files {
		if err := t.WriteHeader(&tar.Header{Name: f.Name, Mode: f.Mode, Size: int64(len(f.Data)), Format: tar.FormatUSTAR}); err != nil {
			return descriptor{}, err
		}
		if _, err := t.Write(f.Data); err != nil {
			return descriptor{}, err
		}
	}
	if err := t.Close(); err != nil {
		return descriptor{}, err
	}
	layer, err := l.blob(layerType, tarball.Bytes())
	if err != nil {
		return descriptor{}, err
	}
	settings := map[string]any{"Entrypoint": []string{v.Entrypoint}, "Env": []string{"PATH=/usr/local/bin:/usr/bin:/bin"}}
	if len(v.Cmd) > 0 {
		settings["Cmd"] = v.Cmd
	}
	if v.User != "" {
		settings["User"] = v.User
	}
	config, err := l.object(configType, map[string]any{"architecture": v.Arch, "os": "linux", "config": settings,
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{layer.Digest}}})
	if err != nil {
		return descriptor{}, err
	}
	return l.object(manifestType, map[string]any{"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": []descriptor{layer}})
}
