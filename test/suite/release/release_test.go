package release

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/test/suite/worker"
)

// TestRelease signs the packages that make dist has written and installs the deb from the
// repository; what was changed after the signature is refused.
func TestRelease(t *testing.T) {
	if os.Getenv("AUTOSCALER_TEST_RELEASE") != "1" {
		t.Skip("make e2e-release runs this: AUTOSCALER_TEST_RELEASE=1 is not set")
	}
	r := publish(t)
	t.Run("checksums", r.checksums)
	t.Run("install", func(t *testing.T) {
		d := newDebian(t)
		if out, err := d.sh(r.commands(t)); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		out, err := d.sh("autoscaler-agent version && dpkg-query -W -f '${Status} ${Version}' autoscaler-agent")
		if err != nil || !strings.Contains(out, "install ok installed") {
			t.Errorf("%v: %s", err, out)
		}
	})
	for name, c := range map[string]struct{ file, want string }{
		"package":   {"apt/pool/main/a/autoscaler-agent/*.deb", "Hash Sum mismatch"},
		"index":     {"apt/dists/stable/main/binary-*/Packages.gz", "Hash Sum mismatch"},
		"signature": {"apt/dists/stable/InRelease", "invalid"},
	} {
		t.Run("changed "+name, func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(r.repo, c.file))
			if err != nil || len(files) == 0 {
				t.Fatalf("%s: %v", c.file, err)
			}
			for _, file := range files {
				flip(t, file)
				defer flip(t, file)
			}
			d := newDebian(t)
			out, err := d.sh(r.commands(t))
			if err == nil || !strings.Contains(out, c.want) {
				t.Errorf("%v, want %q:\n%s", err, c.want, out)
			}
			if out, err := d.sh("test -e /usr/bin/autoscaler-agent"); err == nil {
				t.Errorf("it is installed all the same: %s", out)
			}
		})
	}
	t.Run("dnf", r.dnf)
}

// released is a copy of dist with its signatures and repositories, served over HTTP.
type released struct {
	dist, repo, url string
	env             []string
}

func publish(t *testing.T) *released {
	t.Helper()
	dir := t.TempDir()
	r := &released{dist: filepath.Join(dir, "dist"), repo: filepath.Join(dir, "dist/repo"), env: append(os.Environ(), "GNUPGHOME="+filepath.Join(dir, "gpg"))}
	server := httptest.NewServer(http.FileServer(http.Dir(r.repo)))
	t.Cleanup(server.Close)
	r.url = server.URL
	r.host(t, "mkdir -m 0700 '"+dir+"/gpg' && cp -r ../../../dist '"+r.dist+"' && rm -rf '"+r.repo+"'")
	r.host(t, "gpg --batch --quiet --passphrase '' --quick-generate-key 'release test <test@example.net>' ed25519 sign never && minisign -G -W -f -p '"+dir+"/mini.pub' -s '"+dir+"/mini.key'")
	r.host(t, "sh ../../../packaging/release.sh '"+r.dist+"' test@example.net '"+r.url+"' '"+dir+"/mini.key'")
	t.Cleanup(func() { _, _ = r.try("gpgconf --kill all") })
	return r
}

func (r *released) try(line string) (string, error) {
	cmd := exec.Command("sh", "-ec", line)
	cmd.Env = r.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (r *released) host(t *testing.T, line string) string {
	t.Helper()
	out, err := r.try(line)
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return out
}

// checksums: both signatures are good, and bad once a byte of SHA256SUMS has changed.
func (r *released) checksums(t *testing.T) {
	verify := []string{
		"cd '" + r.dist + "' && gpg --batch --verify SHA256SUMS.asc SHA256SUMS",
		"cd '" + r.dist + "' && minisign -V -p ../mini.pub -m SHA256SUMS -x SHA256SUMS.minisig",
	}
	for _, line := range append(verify, "cd '"+r.dist+"' && sha256sum --quiet --check SHA256SUMS") {
		r.host(t, line)
	}
	flip(t, filepath.Join(r.dist, "SHA256SUMS"))
	for _, line := range verify {
		if out, err := r.try(line); err == nil {
			t.Errorf("%s passes after a change: %s", line, out)
		}
	}
	flip(t, filepath.Join(r.dist, "SHA256SUMS"))
}

// flip changes one byte in the middle of a file; twice is none.
func flip(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		data[len(data)/2] ^= 1
		err = os.WriteFile(file, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// commands are those of docs/install.md for Debian, with the address of this test.
func (r *released) commands(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```\n(install -d .*?apt-get install .*?)^```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/install.md has no commands for apt")
	}
	return strings.NewReplacer("https://packages.example.net", r.url, "apt-get install ", "apt-get install -y --no-install-recommends ").Replace(string(bytes.TrimSpace(block[1])))
}

// debian is a bare Debian with dnf under a tmpfs, without package sources: what this machine's own package
// manager has half done is no part of it.
type debian struct{ root string }

func newDebian(t *testing.T) debian {
	t.Helper()
	tree, err := worker.Tree(t.Context(), t.Output(), "-dnf", "dnf", "gnupg", "rpm")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "agent-release")
	if err != nil {
		t.Fatal(err)
	}
	d := debian{filepath.Join(dir, "root")}
	t.Cleanup(func() {
		out, err := exec.Command("sh", "-c", "umount '"+d.root+"' && umount '"+dir+"'").CombinedOutput()
		if err != nil {
			t.Errorf("umount: %v %s", err, out)
			return // a directory that is still mounted is not removed
		}
		if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	script := `mount -t tmpfs -o size=1G agent-release "$0"
mkdir "$0/root" "$0/upper" "$0/work"
mount -t overlay agent-release -o "lowerdir=$1,upperdir=$0/upper,workdir=$0/work" "$0/root"
cd "$0/root" && rm -rf etc/apt/sources.list etc/apt/sources.list.d/* etc/autoscaler-agent var/lib/apt/lists/* etc/apt/keyrings usr/bin/autoscaler-agent`
	if out, err := exec.Command("sh", "-ec", script, dir, tree).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return d
}

// sh runs lines of shell in it; the first that fails ends them.
func (d debian) sh(lines string) (string, error) {
	cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "--", "sh", "-ec",
		`mount -t proc proc "$0/proc"; mount -t devtmpfs dev "$0/dev" 2>/dev/null || mount --bind /dev "$0/dev"; exec chroot "$0" sh -ec "$1"`, d.root, lines)
	cmd.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "HOME=/root", "DEBIAN_FRONTEND=noninteractive"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}
