package leader

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// image is one program under the name that a pod calls.
type image struct {
	Name    string // registry.k8s.io/etcd:3.6.8-0
	Program string // file on this machine
	In      string // directory in the image
}

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	configType   = "application/vnd.oci.image.config.v1+json"
	layerType    = "application/vnd.oci.image.layer.v1.tar"
)

type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int64             `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// writeImages writes an archive in the layout of OCI, which ctr imports.
func writeImages(file string, images []image) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	t := tar.NewWriter(f)
	add := func(name string, data []byte) error {
		if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
			return err
		}
		_, err := t.Write(data)
		return err
	}
	blob := func(kind string, data []byte) (descriptor, error) {
		sum := sha256.Sum256(data)
		digest := hex.EncodeToString(sum[:])
		return descriptor{MediaType: kind, Digest: "sha256:" + digest, Size: int64(len(data))}, add("blobs/sha256/"+digest, data)
	}
	var manifests []descriptor
	for _, i := range images {
		d, err := i.write(blob)
		if err != nil {
			return fmt.Errorf("write image %s: %w", i.Name, err)
		}
		d.Annotations = map[string]string{"io.containerd.image.name": i.Name}
		manifests = append(manifests, d)
	}
	index, err := json.Marshal(map[string]any{"schemaVersion": 2, "manifests": manifests})
	if err != nil {
		return err
	}
	if err := add("index.json", index); err != nil {
		return err
	}
	if err := add("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)); err != nil {
		return err
	}
	return t.Close()
}

func (i image) write(blob func(kind string, data []byte) (descriptor, error)) (descriptor, error) {
	program, err := os.Open(i.Program)
	if err != nil {
		return descriptor{}, err
	}
	defer program.Close()
	size, err := program.Seek(0, io.SeekEnd)
	if err != nil {
		return descriptor{}, err
	}
	if _, err := program.Seek(0, io.SeekStart); err != nil {
		return descriptor{}, err
	}
	var layer bytes.Buffer
	t := tar.NewWriter(&layer)
	to := filepath.Join(i.In, filepath.Base(i.Program))
	if err := t.WriteHeader(&tar.Header{Name: to, Mode: 0o755, Size: size}); err != nil {
		return descriptor{}, err
	}
	if _, err := io.Copy(t, program); err != nil {
		return descriptor{}, err
	}
	if err := t.Close(); err != nil {
		return descriptor{}, err
	}
	content, err := blob(layerType, layer.Bytes())
	if err != nil {
		return descriptor{}, err
	}
	text, err := json.Marshal(map[string]any{
		"architecture": "amd64", "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/" + to}, "Env": []string{"PATH=/usr/local/bin:/usr/bin:/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{content.Digest}},
	})
	if err != nil {
		return descriptor{}, err
	}
	config, err := blob(configType, text)
	if err != nil {
		return descriptor{}, err
	}
	manifest, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": manifestType, "config": config, "layers": []descriptor{content}})
	if err != nil {
		return descriptor{}, err
	}
	return blob(manifestType, manifest)
}
