package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestImage reads the archive as a runtime does: from index to layer, each by its digest.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"agent-amd64": "A", "agent-arm64": "B", "ca.crt": "-----BEGIN CERTIFICATE-----\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := options{name: "registry.example.net/agent:v1", out: filepath.Join(dir, "image.tar"), program: "agent", user: "65532:65532", cmd: "run", certificates: filepath.Join(dir, "ca.crt")}
	args := []string{"amd64=" + filepath.Join(dir, "agent-amd64"), "arm64=" + filepath.Join(dir, "agent-arm64")}
	if err := o.run(args); err != nil {
		t.Fatal(err)
	}
	first, err := os.ReadFile(o.out)
	if err != nil {
		t.Fatal(err)
	}
	if err := o.run(args); err != nil {
		t.Fatal(err)
	}
	if second, _ := os.ReadFile(o.out); !bytes.Equal(first, second) {
		t.Error("two archives of the same files differ")
	}
	files := contents(t, bytes.NewReader(first))
	type list struct {
		Manifests []descriptor
		Layers    []descriptor
		Config    descriptor
	}
	read := func(d descriptor, to any) []byte {
		data, ok := files["blobs/sha256/"+d.Digest[len("sha256:"):]]
		sum := sha256.Sum256(data)
		if !ok || "sha256:"+hex.EncodeToString(sum[:]) != d.Digest || int64(len(data)) != d.Size {
			t.Fatalf("%s is not what it is called", d.Digest)
		}
		if to != nil {
			if err := json.Unmarshal(data, to); err != nil {
				t.Fatal(err)
			}
		}
		return data
	}
	var top, whole list
	if err := json.Unmarshal(files["index.json"], &top); err != nil || len(top.Manifests) != 1 || top.Manifests[0].Annotations["io.containerd.image.name"] != o.name {
		t.Fatalf("index: %v %s", err, files["index.json"])
	}
	read(top.Manifests[0], &whole)
	for i, want := range []struct{ arch, text string }{{"amd64", "A"}, {"arm64", "B"}} {
		var m list
		var config struct {
			Architecture string
			Config       struct {
				Entrypoint, Cmd []string
				User            string
			}
			RootFS struct {
				DiffIDs []string `json:"diff_ids"`
			}
		}
		read(whole.Manifests[i], &m)
		read(m.Config, &config)
		layer := contents(t, bytes.NewReader(read(m.Layers[0], nil)))
		if whole.Manifests[i].Platform["architecture"] != want.arch || config.Architecture != want.arch || config.RootFS.DiffIDs[0] != m.Layers[0].Digest ||
			config.Config.Entrypoint[0] != "/usr/local/bin/agent" || config.Config.Cmd[0] != "run" || config.Config.User != "65532:65532" {
			t.Errorf("%s: %+v", want.arch, config)
		}
		if string(layer["usr/local/bin/agent"]) != want.text || len(layer[certificatesFile]) == 0 {
			t.Errorf("%s: layer %q", want.arch, layer)
		}
	}
	for _, bad := range [][]string{nil, {"amd64"}, {"amd64=" + dir + "/none"}} {
		if err := o.run(bad); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
}

func contents(t *testing.T, from io.Reader) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if out[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}
