package quickstart

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestScripts: the scripts are ones of a POSIX shell, and shellcheck finds nothing in them
// where it is installed.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob(deploy + "/cli/*.sh")
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	check, missing := exec.LookPath("shellcheck")
	for _, file := range files {
		if out, err := exec.Command("sh", "-n", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", file, err, out)
		}
		if missing != nil {
			t.Logf("shellcheck is not installed: %s was only parsed", file)
			continue
		}
		if out, err := exec.Command(check, "-s", "sh", file).CombinedOutput(); err != nil {
			t.Errorf("%s: %s", file, out)
		}
	}
}

// TestScriptsRefuse: what is missing or cannot be is named before the cloud is called.
func TestScriptsRefuse(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"aws", "openstack"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho \"the cloud was called\" >&2\nexit 1\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, c := range []struct{ line, want string }{
		{"aws.sh", "aws.sh leader  --cluster NAME"},
		{"aws.sh rubbish --cluster demo", "aws.sh leader  --cluster NAME"},
		{"aws.sh leader --clutser demo", "aws.sh leader  --cluster NAME"},
		{"aws.sh leader --cluster", "aws.sh leader  --cluster NAME"},
		{"aws.sh leader", "--cluster: a name of small letters"},
		{"aws.sh leader --cluster 'a;b'", "--cluster: a name of small letters"},
		{"aws.sh leader --cluster demo --owner 'a,b'", "--owner: letters"},
		{"aws.sh leader --cluster demo", "--admin: the network"},
		{"aws.sh leader --cluster demo --admin 10.0.0.0/8", "--key: the file"},
		{"aws.sh leader --cluster demo --between none", "--between: ports or all"},
		{"openstack.sh leader --cluster demo --between none", "--between: ports or all"},
		{"aws.sh workers --cluster demo", "--user-data: the file"},
		{"aws.sh workers --cluster demo --type m5.large,", "--type: instance types"},
		{"aws.sh workers --cluster demo --type 'm5.large;x'", "--type: instance types"},
		{"aws.sh workers --cluster demo --spot 1", "--spot: yes or no"},
		{"aws.sh workers --cluster demo --max ten", "--disk, --min, --max: whole numbers"},
		{"aws.sh workers --cluster demo --group 'a b'", "--group: a name of small letters"},
		{"aws.sh leader --cluster demo --admin 10.0.0.0/8 --key /etc/passwd --type m5.large,m5a.large", "--type: the leader has one type"},
		{"openstack.sh", "openstack.sh leader --cluster NAME"},
		{"openstack.sh leader --cluster Demo", "--cluster: a name of small letters"},
		{"openstack.sh leader --cluster demo --admin 10.0.0.0/8 --key /dev/null", "--key: the file"},
	} {
		name, rest, _ := strings.Cut(c.line, " ")
		out, err := exec.Command("sh", "-c", script(t, name)+" "+rest).CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) || strings.Contains(string(out), "the cloud was called") {
			t.Errorf("%s: %v, %s", c.line, err, out)
		}
	}
}

// TestScriptsRefuseWhatAWSTells: what only AWS's answers show to be wrong is refused before anything is made.
func TestScriptsRefuseWhatAWSTells(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"worker.sh": "#!/bin/sh\n",
		"aws": `#!/bin/sh
case "$*" in
*describe-instance-types*) echo 1 ;; # one of the types is of arm64
*Architecture*) echo x86_64 ;;
*describe-security-groups*) [ "$1 $5" != "ec2 Name=vpc-id,Values=other" ] || exit 0; echo sg-1 ;;
*describe-vpcs*) echo vpc-1 ;;
*describe*) ;;
*) echo "something is made: $*" ;;
esac
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for line, want := range map[string]string{
		"--type m5.large,m6g.large":            "--type: 1 of the types m5.large m6g.large are of arm64",
		"--type m6g.large --image ami-1":       "--image: ami-1 is for x86_64, and m6g.large for arm64",
		"--type m6g.large --min 4 --max 3":     "--min: 4 is more than the maximum 3",
		"--type m6g.large --min 11":            "--min: 11 is more than the maximum 10",
		"--type m6g.large --vpc other --min 1": "there is no security group demo-worker: run aws.sh leader first",
	} {
		cmd := exec.Command("sh", "-c", script(t, "aws.sh")+" workers --cluster demo --user-data worker.sh "+line)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) || strings.Contains(string(out), "something is made") {
			t.Errorf("%s: %v, %s", line, err, out)
		}
	}
}
