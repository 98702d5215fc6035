package release

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// dnf types docs/install.md's commands for Rocky Linux with dnf itself, in a bare Debian: no image of Rocky Linux is to
// be had here. What such a root lacks is a package that provides /bin/sh to rpm's books; an empty one stands in for it.
func (r *released) dnf(t *testing.T) {
	commands := r.dnfCommands(t)
	t.Run("install", func(t *testing.T) {
		d := r.rocky(t)
		if out, err := d.sh(commands); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		out, err := d.sh("autoscaler-agent version && rpm -q autoscaler-agent && rpm -V --nogroup autoscaler-agent && test -s /usr/share/doc/autoscaler-agent/NOTICES")
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	for name, c := range map[string]struct{ change, want string }{
		"package":   {"", "checksum"},
		"list":      {"repodata/primary.xml.gz", "checksum"},
		"signature": {"repodata/repomd.xml.asc", "GPG"},
		"unsigned":  {"", "not signed"},
	} {
		t.Run("changed "+name, func(t *testing.T) {
			changed := r.copy(t)
			switch {
			case c.change != "":
				flip(t, filepath.Join(changed.repo, "rpm", c.change))
			case name == "package":
				files, err := filepath.Glob(filepath.Join(changed.repo, "rpm/*.rpm"))
				if err != nil || len(files) != 2 {
					t.Fatalf("%v, %v", files, err)
				}
				for _, file := range files {
					flip(t, file)
				}
			default: // the list is signed anew, over packages whose own signatures were taken off
				changed.host(t, "cd '"+changed.repo+"/rpm' && rpmsign --delsign *.rpm && rm -r repodata && createrepo_c --quiet --simple-md-filenames . && gpg --batch --yes --armor --detach-sign repodata/repomd.xml")
			}
			d := r.rocky(t)
			// The changed repository is served at the same address.
			out, err := changed.serving(r, func() (string, error) { return d.sh(commands) })
			if err == nil || !strings.Contains(out, c.want) {
				t.Errorf("%v, want %q:\n%s", err, c.want, out)
			}
			if out, err := d.sh("test -e /usr/bin/autoscaler-agent"); err == nil {
				t.Errorf("it is installed all the same: %s", out)
			}
		})
	}
}

// copy is a second copy of the repository.
func (r *released) copy(t *testing.T) *released {
	t.Helper()
	c := *r
	c.repo = filepath.Join(t.TempDir(), "repo")
	r.host(t, "cp -r '"+r.repo+"' '"+c.repo+"'")
	return &c
}

// serving puts the changed repository into the place of the served one for as long as something runs.
func (r *released) serving(served *released, run func() (string, error)) (string, error) {
	aside := served.repo + ".aside"
	if err := os.Rename(served.repo, aside); err != nil {
		return "", err
	}
	defer func() { _ = os.Rename(aside, served.repo) }()
	if err := os.Rename(r.repo, served.repo); err != nil {
		return "", err
	}
	defer func() { _ = os.Rename(served.repo, r.repo) }()
	return run()
}

// rocky is a root in which dnf finds no other repository than that of the commands, and an empty package for /bin/sh.
func (r *released) rocky(t *testing.T) debian {
	t.Helper()
	d := newDebian(t)
	out, err := d.sh(`rm -rf /etc/yum.repos.d /etc/dnf/vars /var/lib/rpm /var/cache/dnf && mkdir -p /etc/yum.repos.d /shell && cd /shell
printf '%s\n' 'Name: shell' 'Version: 1' 'Release: 1' 'Summary: stands in for a shell' 'License: MIT' 'BuildArch: noarch' 'Provides: /bin/sh' '%description' 'nothing' '%files' >shell.spec
rpmbuild --quiet -bb --define '_topdir /shell' shell.spec
rpm --install /shell/RPMS/noarch/*.rpm`)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return d
}

// dnfCommands are those of docs/install.md, with the address of this test.
func (r *released) dnfCommands(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^```\n(curl [^\n]*yum.repos.d.*?dnf install .*?)^```").FindSubmatch(page)
	if block == nil {
		t.Fatal("docs/install.md has no commands for dnf")
	}
	return strings.NewReplacer("https://packages.example.net", r.url, "dnf install ", "dnf install -y ").Replace(strings.TrimSpace(string(block[1])))
}
