package systemd

import (
	"strings"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/test/await"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/cloud/aws"
)

const dropIn = "/run/systemd/system/autoscaler-agent.service.d/test.conf"

// override lays lines over the unit's section [Service].
func (h *host) override(lines string) {
	h.t.Helper()
	h.run("mkdir -p $(dirname " + dropIn + ") && printf '[Service]\\n" + lines + "' > " + dropIn + " && systemctl daemon-reload")
}

func (h *host) original() {
	h.t.Helper()
	h.run("rm -rf $(dirname " + dropIn + ") && systemctl daemon-reload && systemctl reset-failed autoscaler-agent; systemctl restart autoscaler-agent")
	h.until("acting", "autoscaler-agent status | grep -q 'acting *yes'")
}

// fails runs what has to fail and returns what it says.
func (h *host) fails(line string) string {
	h.t.Helper()
	out, err := h.try(line)
	if err == nil {
		h.t.Errorf("%s does not fail: %s", line, out)
	}
	return out
}

func (h *host) pid() string { return h.run("systemctl show -p MainPID --value autoscaler-agent") }

// reload: groups.yaml and the log level come into force without a restart; what does not is
// named, and the exit code says so. Secrets come as credentials of the unit.
func (h *host) reload() {
	pid := h.pid()
	h.run("printf 'groups:\\n  workers:\\n    price: 0.2\\n' > /etc/autoscaler-agent/groups.yaml && chmod 0644 /etc/autoscaler-agent/groups.yaml && systemctl reload autoscaler-agent")
	h.run("echo AUTOSCALER_LOG_LEVEL=debug >> /etc/autoscaler-agent/agent.env && autoscaler-agent reload | grep 'the log level is debug'")
	h.until("lines at debug", "journalctl -u autoscaler-agent -p 7..7 --no-pager | grep -q .")
	h.run("printf 'groups:\\n  workers:\\n    prise: 0.2\\n' > /etc/autoscaler-agent/groups.yaml")
	h.fails("systemctl reload autoscaler-agent")
	h.run("journalctl -u autoscaler-agent --no-pager | grep '/etc/autoscaler-agent/groups.yaml:3: groups.workers.prise: no such field: did you mean price'")
	h.run("autoscaler-agent status | grep 'not in force: /etc/autoscaler-agent/groups.yaml:3'")
	h.until("the status line", "systemctl show -p StatusText autoscaler-agent | grep 'groups.yaml is not in force'")
	h.run("rm /etc/autoscaler-agent/groups.yaml && sed -i /LOG_LEVEL=debug/d /etc/autoscaler-agent/agent.env && echo AUTOSCALER_SCALING_UNNEEDED_FOR=11m >> /etc/autoscaler-agent/agent.env")
	if out := h.fails("autoscaler-agent reload"); !strings.Contains(out, "AUTOSCALER_SCALING_UNNEEDED_FOR: a change takes a restart") {
		h.t.Errorf("it says %s", out)
	}
	h.run("sed -i /UNNEEDED_FOR=11m/d /etc/autoscaler-agent/agent.env && kill -HUP " + strings.TrimSpace(pid))
	h.until("groups.yaml gone", "autoscaler-agent reload")
	if now := h.pid(); now != pid {
		h.t.Errorf("process %s became %s", pid, now)
	}
	h.run("echo debug > /root/level")
	h.override("LoadCredential=AUTOSCALER_LOG_LEVEL:/root/level\\n")
	h.run("systemctl restart autoscaler-agent && journalctl --rotate && journalctl --vacuum-time=1s >/dev/null 2>&1")
	h.until("lines at debug by a credential", "journalctl -u autoscaler-agent -p 7..7 --no-pager | grep -q .")
	h.original()
}

// files: check tries files as the unit's user, who may not do what root may.
func (h *host) files() {
	h.run("chown root:root /var/lib/autoscaler-agent")
	if out := h.fails("autoscaler-agent check --offline"); !strings.Contains(out, "error    state directory") || !strings.Contains(out, "as user autoscaler-agent") {
		h.t.Errorf("check says %s", out)
	}
	h.run("chown autoscaler-agent:autoscaler-agent /var/lib/autoscaler-agent && autoscaler-agent check --offline")
}

// disks: a disk that is full or read-only is said in one line, and no half file is left.
func (h *host) disks() {
	h.run("mkdir -p /mnt/full /mnt/fixed && mount -t tmpfs -o size=64k agent-test /mnt/full && mount -t tmpfs agent-test /mnt/fixed && cp /etc/worker.env /mnt/fixed/ && mount -o remount,ro /mnt/fixed && dd if=/dev/zero of=/mnt/full/ballast bs=1k count=63 2>/dev/null")
	for _, line := range []string{"autoscaler-agent status --record /mnt/full/rounds.gz", "autoscaler-agent userdata render -o /mnt/full/worker.sh", "autoscaler-agent status --record /mnt/fixed/rounds.gz", "autoscaler-agent userdata render -o /mnt/fixed/worker.sh",
		"AUTOSCALER_STATE_DIR=/mnt/fixed autoscaler-agent check --offline | grep ^error", "autoscaler-agent version > /mnt/full/x/y"} {
		out := h.run("(" + line + ") 2>&1 || true")
		if strings.Count(out, "\n") != 1 || !strings.Contains(out, "no space left") && !strings.Contains(out, "read-only file system") && !strings.Contains(out, "Directory nonexistent") {
			h.t.Errorf("%s says %s", line, out)
		}
	}
	if out := strings.Fields(h.run("ls -A /mnt/full /mnt/fixed")); strings.Join(out, " ") != "/mnt/fixed: worker.env /mnt/full: ballast" {
		h.t.Errorf("left: %q", out)
	}
	// The running agent goes on without its state, says so once, and writes it again.
	h.override("Environment=AUTOSCALER_STATE_DIR=/mnt/full\\nReadWritePaths=/mnt/full\\n")
	h.run("chmod 0777 /mnt/full && systemctl restart autoscaler-agent")
	h.until("the trouble", "journalctl -u autoscaler-agent --no-pager -o cat | grep -q 'the state is not written down'")
	h.until("acting", "autoscaler-agent status | grep -q 'acting *yes'")
	h.original()
	h.run("umount /mnt/full /mnt/fixed")
}

// stop: SIGTERM waits for the purchase that is under way, and the next process does not repeat
// it.
func (h *host) stop() {
	before := h.launched()
	disarm := h.w.Cloud.Inject(aws.Fault{Service: "autoscaling", Action: "SetDesiredCapacity", Kind: aws.Slow, Times: 1, Delay: 4 * time.Second})
	defer disarm()
	h.deploy("late", 1)
	for deadline := time.Now().Add(await.Limit); h.w.Cloud.Struck(aws.Slow) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			h.t.Fatal("no purchase came")
		}
	}
	start := time.Now()
	h.run("systemctl stop autoscaler-agent")
	h.t.Logf("stopped after %s", time.Since(start).Round(10*time.Millisecond))
	if got := strings.Fields(h.run("systemctl show -p Result -p ExecMainStatus -p ExecMainCode --value autoscaler-agent")); strings.Join(got, " ") != "success 1 0" {
		h.t.Errorf("result, code and status are %q", got)
	}
	calls := h.w.Cloud.Calls(aws.Action("autoscaling", "SetDesiredCapacity"))
	if last := calls[len(calls)-1]; !last.Done || last.Status != 200 {
		h.t.Errorf("the purchase was not finished: %+v", last)
	}
	h.run("systemctl start autoscaler-agent")
	h.pods("late", 1)
	if got := h.launched() - before; got != 1 {
		h.t.Errorf("%d instances for one pod", got)
	}
}

// crash: a process that ends at once is given up; one that misses its kubeconfig ends more
// slowly than the limit of starts, so that it is tried for ever.
func (h *host) crash() {
	h.override("ExecStart=\\nExecStart=/bin/false\\nRestartSec=100ms\\n")
	_, _ = h.try("systemctl restart autoscaler-agent") // it fails, as it should
	h.until("the limit", "systemctl show -p ActiveState --value autoscaler-agent | grep -q failed && journalctl -u autoscaler-agent --no-pager | grep -q 'Start request repeated too quickly'")
	if n := strings.TrimSpace(h.run("systemctl show -p NRestarts --value autoscaler-agent")); n == "0" {
		h.t.Error("it was never tried again")
	}
	h.original()
	h.run("mv /etc/autoscaler-agent/kubeconfig /root/kubeconfig")
	start := time.Now()
	_, _ = h.try("systemctl restart autoscaler-agent") // it fails, as it should
	if took := time.Since(start); took < 10*time.Second {
		h.t.Errorf("without a kubeconfig it ends after %s: twenty starts would be used up", took)
	}
	h.run("mv /root/kubeconfig /etc/autoscaler-agent/kubeconfig")
	h.until("acting", "autoscaler-agent status | grep -q 'acting *yes'") // by itself
}
