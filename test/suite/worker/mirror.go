package worker

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// Mirror serves a worker's files under their publishers' addresses, as --mirror wants them.
type Mirror struct {
	*httptest.Server
	SHA256 map[string]string // by NAME/ARCH, of what is served

	mu      sync.Mutex
	files   map[string][]byte // by path
	corrupt map[string]bool   // names
	served  map[string]int    // names
}

// NewMirror packs the programs as their publishers do. Versions are those of spec.
func NewMirror(parts Parts, spec userdata.Spec) (*Mirror, error) {
	m := &Mirror{SHA256: map[string]string{}, files: map[string][]byte{}, corrupt: map[string]bool{}, served: map[string]int{}}
	content := map[string]func() ([]byte, error){
		"kubelet": parts.plain("kubelet"), "kubeadm": parts.plain("kubeadm"), "runc": parts.plain("runc"),
		"containerd": parts.packed("bin/", "containerd", "containerd-shim-runc-v2", "ctr"),
		"crictl":     parts.packed("", "crictl"),
		"cni":        parts.packed("./", "bridge", "host-local", "loopback", "portmap"),
	}
	for name, read := range content {
		data, err := read()
		if err != nil {
			return nil, fmt.Errorf("fill the mirror: %s: %w", name, err)
		}
		sum := sha256.Sum256(data)
		m.SHA256[name+"/"+spec.Arch] = hex.EncodeToString(sum[:])
		m.files[name] = data
	}
	spec.Downloads.SHA256 = m.SHA256
	list, err := userdata.DownloadsOf(spec)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, d := range list {
		names["/"+d.Path] = d.Name
	}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := names[r.URL.Path]
		data := m.files[name]
		if data == nil {
			http.NotFound(w, r)
			return
		}
		m.mu.Lock()
		m.served[name]++
		bad := m.corrupt[name]
		m.mu.Unlock()
		if bad {
			data = append(bytes.Clone(data[:len(data)-1]), data[len(data)-1]^1)
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(data)))
		_, _ = w.Write(data) // a machine that goes away is its own affair
	}))
	return m, nil
}

// Corrupt turns a bit of a file over.
func (m *Mirror) Corrupt(name string, yes bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.corrupt[name] = yes
}

// Served counts the answers with a file.
func (m *Mirror) Served() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string]int{}
	for k, v := range m.served {
		out[k] = v
	}
	return out
}

func (p Parts) plain(name string) func() ([]byte, error) {
	dir := p.Bin
	if p.other != "" && (name == "kubelet" || name == "kubeadm") {
		dir = p.other
	}
	return func() ([]byte, error) { return os.ReadFile(filepath.Join(dir, name)) }
}

func (p Parts) packed(prefix string, names ...string) func() ([]byte, error) {
	return func() ([]byte, error) {
		var b bytes.Buffer
		z, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		if err != nil {
			return nil, err
		}
		t := tar.NewWriter(z)
		for _, name := range names {
			data, err := p.plain(name)()
			if err != nil {
				return nil, err
			}
			if err := t.WriteHeader(&tar.Header{Name: prefix + name, Mode: 0o755, Size: int64(len(data))}); err != nil {
				return nil, err
			}
			if _, err := t.Write(data); err != nil {
				return nil, err
			}
		}
		if err := t.Close(); err != nil {
			return nil, err
		}
		if err := z.Close(); err != nil {
			return nil, err
		}
		return b.Bytes(), nil
	}
}
