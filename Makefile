# Everything a person or CI runs. `make help` lists it.
# Two Go modules: the product (.) and test/ (nested, so that Kubernetes itself and
# the emulated clouds never enter the product's go.mod).

GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null)
DATE    ?= $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
STAMP   := github.com/autoscaler-agent/autoscaler-agent/internal/version
LDFLAGS := -s -w -X $(STAMP).version=$(VERSION) -X $(STAMP).commit=$(COMMIT) -X $(STAMP).date=$(DATE)
FUZZTIME ?= 10m
PROVIDER ?= asg
SEEDS ?= 20
BENCH ?= .
# Rules of gosec that find names in place of secrets (G101), ignored errors that are meant (G104), unsafe
# in generated code (G103), counts that fit (G115) and files that the operator names (G304, G703).
GOSEC_WITHOUT := G101,G103,G104,G115,G304,G703
KUBERNETES ?= 1.30 1.31 1.32 1.33 1.34 1.35 1.36
FROM ?= 1.35
# What make test runs of test/: the main job on a real control plane, each provider, join, approval and reaper. Every other
# test of test/ is make test-all's, so that CI, which runs both, runs each once (agent/makefile_test.go holds the lists).
MAIN_PACKAGES := ./suite/attest ./suite/e2e ./suite/join ./suite/provider ./suite/services
MAIN_TESTS := TestASG TestAttestedGrowth TestBurstIsOneCall TestClusterAPI TestExternalGRPC TestMagnum \
	TestMetricsOfTheRunningAgent TestNodes TestNova TestPlugIn TestPublishedEverywhere TestReaperOverNova TestScaleDown TestServices \
	TestShellWorkerAttests TestTheAgentExplainsItself TestTokenOfAGrowth TestTokenOfAServer TestWrongConfiguration
empty :=
MAIN := ^($(subst $(empty) ,|,$(strip $(MAIN_TESTS))))$$
# The engine and the rules of the reaper start no goroutine (agent/makefile_test.go): the race detector would only make its drawn worlds slower.
SEQUENTIAL := /(agent/(binpack|cluster|decision|fit|plan|replay)|nodecleaner/reaper)(/|$$)
STATICCHECK := $(GO) tool -modfile=$(CURDIR)/tools/go.mod staticcheck
export CGO_ENABLED ?= 0

.PHONY: help build man generate check house audit test test-all oracle soak mutants chaos sim sim-faults flood bench-agent demo e2e-openstack e2e-terraform e2e-hpa e2e-rollout e2e-dra e2e-kueue e2e-clusterapi e2e-worker e2e-versions e2e-leader e2e-ha e2e-upgrade e2e-systemd e2e-ca-example versions kubelet-tables prices bench fuzz dist image clean e2e-page release e2e-release

help: ## what there is
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' Makefile

build: ## the binary for this machine: bin/autoscaler-agent
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/autoscaler-agent ./cmd/autoscaler-agent

man: ## a man page for each command: bin/man
	$(GO) run -trimpath -tags man -ldflags '$(LDFLAGS)' ./cmd/autoscaler-agent man bin/man

generate: ## the Go code of the plug-in protocol, from agent/provider/externalgrpc/externalgrpc.proto (no protoc needed)
	cd tools && $(GO) run ./protogen

check: ## the fast gate: format, vet, staticcheck, unit tests of the product, unit file (under 2 minutes warm)
	@out=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$out" ] || { echo "gofmt these: $$out"; exit 1; }
	$(GO) vet ./...
	$(GO) vet -tags man ./cmd/...
	cd test && $(GO) vet ./...
	cd examples/externalgrpc-server && $(GO) vet ./...
	cd tools && $(GO) vet ./...
	$(STATICCHECK) ./...
	cd test && $(STATICCHECK) ./...
	cd tools && $(STATICCHECK) ./...
	$(GO) test ./...
	@if command -v systemd-analyze >/dev/null; then sh units/verify.sh; else echo "systemd-analyze is not here: the unit file was not verified"; fi

house: ## lines, exported names and types of each package, and what changed since the last tag (SINCE=COMMIT); read, not enforced
	@mkdir -p bin && cd tools && $(GO) build -o ../bin/house ./house
	@bin/house -since '$(SINCE)'

audit: ## before a release, needs the internet: known vulnerabilities in what the binary calls (govulncheck; GOVULNDB=file:///DIR is a copy of the data) and gosec's rules (a minute of CPU, and one to build it)
	$(GO) run golang.org/x/vuln/cmd/govulncheck@v1.6.0 ./cmd/...
	$(GO) run github.com/securego/gosec/v2/cmd/gosec@v2.26.1 -quiet -exclude=$(GOSEC_WITHOUT) -exclude-dir=test -exclude-dir=tools -exclude-dir=examples ./...

test: ## the product's tests, and of test/ what proves the main job on a real control plane: each provider, join, approval, reaper (12 minutes on two idle cores, 20 where nothing is built)
	$(GO) test ./...
	cd tools && $(GO) test ./...
	cd test && $(GO) test -count=1 -p 3 -timeout 60m -run '$(MAIN)' $(MAIN_PACKAGES)

test-all: ## what make test leaves out: the product under the race detector where cgo is, drawn worlds and days, storms, corpora, kube-scheduler's framework (20 minutes on two idle cores)
	@if CGO_ENABLED=1 $(GO) env CC >/dev/null && command -v $$($(GO) env CC) >/dev/null; then \
		CGO_ENABLED=1 $(GO) test -race -short -timeout 40m $$($(GO) list ./... | grep -vE '$(SEQUENTIAL)'); else echo "no C compiler: no race detector"; fi
	cd test && $(GO) test -count=1 -p 3 -timeout 60m -skip '$(MAIN)' ./...

oracle: ## fit beside kube-scheduler's own framework: a million judgements on worlds from a seed, every broken rule caught, and 40 mixes with the real kube-scheduler (ORACLE_FLAGS="-seed 1 -judgements 5000000"; with -spread a third of all refusals is of spread)
	cd test && $(GO) run ./cmd/oracle $(ORACLE_FLAGS)
	cd test && $(GO) test ./judge/oracle -run 'TestStories|TestMutants' -all-mutants -v -timeout 40m
	cd test && $(GO) test ./judge/oracle/loop -mixes 40 -seed 0 -v -timeout 40m

soak: ## the tests that draw their worlds, by the clock, those of the engine SEEDS times as many (default 20), and ten minutes (DEAREST) of looking for the dearest one; AUTOSCALER_TEST_SEED plays a printed seed again
	AUTOSCALER_TEST_SEED=$${AUTOSCALER_TEST_SEED:-0} AUTOSCALER_TEST_SEEDS=$(SEEDS) AUTOSCALER_TEST_DEAREST=$${DEAREST:-10m} $(GO) test -count=1 -timeout 4h ./...
	cd test && AUTOSCALER_TEST_SEED=$${AUTOSCALER_TEST_SEED:-0} $(GO) test -count=1 -timeout 1h ./judge/admission

mutants: ## every check of csrsigner/rules, nodecleaner/reaper and of packages of the engine is broken, one at a time: its own tests, or the stories of agent/plan, must notice (MUTANTS_FLAGS="-package csrsigner/rules -v")
	cd test && $(GO) run ./cmd/mutants $(MUTANTS_FLAGS)

chaos: ## a million rounds of the reaper's rules (ROUNDS; make check plays 6,000) in drawn worlds in which everything goes wrong, by the clock's seed, which is printed (AUTOSCALER_TEST_SEED draws one again): 0 living Nodes deleted. The whole agent in storms: make sim
	AUTOSCALER_TEST_SEED=$${AUTOSCALER_TEST_SEED:-0} AUTOSCALER_TEST_ROUNDS=$${ROUNDS:-1000000} AUTOSCALER_TEST_FARMS=$${FARMS:-90} $(GO) test -count=1 -v -timeout 4h -run 'TestChaos|TestHonestWorlds' ./nodecleaner/reaper

sim: ## the whole agent, one to three of it, in simulated time: drawn storms and calms around it (SEEDS=1-50 HOURS=8 TRACE=failed; BUDGET=10m plays until a violation, for so much processor time; docs/simulation.md); a seed that fails is printed with as few faults as it takes
	cd test && SEEDS=$(SEEDS) HOURS=$${HOURS:-0} $(GO) test -count=1 -v -timeout 12h -run TestSeeds ./world

sim-faults: ## faults that the product once had, or might have, are put back, one at a time: drawn worlds find each within ten minutes of a core (FAULTS=used-name,watch-gap FAULTS_SEED=1000), beside its story where it has one
	cd test && FAULTS=$${FAULTS:-all} FAULTS_SEED=$${FAULTS_SEED:-1000} $(GO) test -count=1 -v -timeout 12h -run TestFaultsFound ./world

flood: ## 10,000 certificate requests from one Node: another Node's is approved within two seconds, half of the honest ones within 500 ms, the agent's memory stays bounded (make test-all plays 2,000); and connections of one address and of fifty to the attested join: 50 machines join meanwhile (make test-all: 5)
	cd test && AUTOSCALER_TEST_FLOOD=10000 $(GO) test -count=1 -v -run TestCSR ./suite/services
	cd test && AUTOSCALER_TEST_FLOOD_MACHINES=50 $(GO) test -count=1 -v -run TestFlood ./suite/attest

demo: ## the main job on this machine: a real control plane, an emulated cloud (PROVIDER, default asg), 300 pods, and back to nothing
	@echo "make demo takes about two minutes; where nothing is built, two idle cores build for ten minutes before"
	cd test && $(GO) run ./cmd/demo --provider $(PROVIDER) $(DEMO_FLAGS)

e2e-openstack: ## providers nova and magnum against real Keystone, Placement, Glance, Nova, Neutron, Cinder and Magnum from Debian's packages (installs them, as root; 13 minutes on two idle cores, and 4 to install)
	sh test/suite/openstack/install.sh
	cd test && AUTOSCALER_TEST_OPENSTACK=1 $(GO) test ./suite/openstack -count=1 -v -timeout 2h

e2e-terraform: ## terraform itself applies and destroys the module of deploy/terraform/openstack in the emulated OpenStack, and the openstack command, where it is installed, runs the script (the provider is built from its Go module: 5 minutes of CPU once, then half a minute; terraform has to be installed)
	cd test && AUTOSCALER_TEST_TERRAFORM=1 $(GO) test ./suite/quickstart -run 'TestTerraformApplies|TestProvidersArePinned|TestOpenStackScript' -count=1 -v -timeout 30m

e2e-hpa: ## load, HorizontalPodAutoscaler, machines, and back, with the real metrics-server built from its Go module (4 minutes of CPU once, then 2 minutes)
	cd test && AUTOSCALER_TEST_HPA=1 $(GO) test ./suite/e2e -run TestHPA -count=1 -v -timeout 40m

e2e-dra: ## pods with ResourceClaims and the real kube-scheduler: devices that groups.yaml tells, drivers that publish late, machines that go, Kubernetes' example driver built from its Go module (2 minutes of CPU once, then 2 minutes); and the allocation held against Kubernetes' own in drawn worlds
	cd test && AUTOSCALER_TEST_DRA=1 $(GO) test ./suite/e2e ./judge/devices -run 'TestDevices|TestExampleDriver|TestAllocates' -count=1 -v -timeout 20m

e2e-kueue: ## Jobs that Kueue admits by ProvisioningRequests, with Kueue's own manager built from its Go module (6 minutes of CPU once, then 2 minutes)
	cd test && AUTOSCALER_TEST_KUEUE=1 $(GO) test ./suite/e2e -run TestKueue -count=1 -v -timeout 40m

e2e-rollout: ## rollouts on a real control plane: a new version reaches every machine, on AWS and on OpenStack; a bad one is halted and taken back; pods that crash on the first machine; a standby, a killed leader and a cloud that throttles (about 20 minutes)
	cd test && AUTOSCALER_TEST_ROLLOUT=1 $(GO) test ./suite/e2e -run TestRollout -count=1 -v -timeout 60m

e2e-clusterapi: ## provider clusterapi against Cluster API's own core manager, built from its Go module (5 minutes of CPU once), and the demo's story with it
	cd test && AUTOSCALER_TEST_CLUSTERAPI=1 $(GO) test ./suite/clusterapi ./suite/provider -run 'TestClusterAPICore|TestDefinitions' -count=1 -v -timeout 60m
	cd test && AUTOSCALER_TEST_CLUSTERAPI=1 $(GO) run ./cmd/demo --provider clusterapi

e2e-ca-example: ## provider externalgrpc against Cluster Autoscaler's own example of a plug-in, built from the checkout that CA names (CA=../autoscaler, tag cluster-autoscaler-1.35.2; 5 minutes of CPU once, then 2 minutes)
	@test -f "$(CA)/cluster-autoscaler/go.mod" || { echo "make e2e-ca-example CA=DIR: DIR is a checkout of github.com/kubernetes/autoscaler (git clone --depth 1 --branch cluster-autoscaler-1.35.2)"; exit 2; }
	cd $(CA)/cluster-autoscaler && $(GO) build -tags aws -o $(CURDIR)/bin/ca-example ./cloudprovider/externalgrpc/examples/external-grpc-cloud-provider-service
	cd test && AUTOSCALER_TEST_CA_EXAMPLE=$(CURDIR)/bin/ca-example $(GO) test ./suite/provider -run TestClusterAutoscalersExample -count=1 -v -timeout 20m

e2e-worker: ## a real worker: systemd containers run the generated user data whole, with real kubeadm, kubelet, containerd and cloud-init, and join a real control plane; instance store, Flatcar's layout; containerd 1.7 to 2.3 pull through a mirror (as root; 20 minutes of CPU and 2 for a Debian once, then 10 minutes)
	sh test/suite/worker/install.sh
	cd test && AUTOSCALER_TEST_WORKER=1 $(GO) test ./suite/worker -count=1 -v -timeout 40m
	cd test && AUTOSCALER_TEST_WORKER=1 $(GO) test ./suite/script -run TestRegistryMirror -count=1 -v -timeout 40m

e2e-versions: ## each minor of Kubernetes that user data is made for (KUBERNETES="1.30 1.36" for some): a worker with its kubelet and kubeadm joins a control plane of it, and one that is three minors newer (as root; 5 minutes of CPU a minor once, then 2 minutes a minor)
	sh test/suite/worker/install.sh
	cd test && for minor in $(KUBERNETES); do \
		AUTOSCALER_TEST_WORKER=1 AUTOSCALER_TEST_KUBERNETES=$$minor $(GO) test ./suite/worker -run 'TestMinorJoins|TestOlderKubelet' -count=1 -v -timeout 40m || exit 1; done

e2e-leader: ## a real leader: a systemd container runs what leader-config prints, with real kubeadm init, the agent is installed on it and makes a real worker come; reboot, other host name, other address, lost disk, renewed certificates (as root; the builds of e2e-worker once, then 20 minutes)
	sh test/suite/worker/install.sh
	cd test && AUTOSCALER_TEST_LEADER=1 $(GO) test ./suite/leader -skip 'TestHA|TestUpgrade' -count=1 -v -timeout 60m

e2e-ha: ## three leaders: systemd containers with real kubeadm behind one endpoint; init, two joins, a worker by user data; the acting agent is killed in the middle of a token, a purchase, an approval and a drain; one leader is replaced, two are lost (as root; the builds of e2e-worker once, then 10 minutes)
	sh test/suite/worker/install.sh
	cd test && AUTOSCALER_TEST_LEADER=1 $(GO) test ./suite/leader -run TestHA -count=1 -v -timeout 40m

e2e-upgrade: ## the way of docs/upgrade.md: two leaders and a worker of Kubernetes FROM (1.35) in systemd containers; real kubeadm upgrade plan, apply and node; a worker with the newer kubelet takes the place of the old one (as root; the builds of e2e-worker and 5 minutes of CPU for the minor once, then 5 minutes)
	sh test/suite/worker/install.sh
	cd test && AUTOSCALER_TEST_LEADER=1 AUTOSCALER_TEST_KUBERNETES=$(FROM) $(GO) test ./suite/leader -run TestUpgradeByKubeadm -count=1 -v -timeout 40m

versions: ## renew userdata/versions.txt from the publishers' own checksum files (VERSIONS="kubelet=v1.36.5 kubeadm=v1.36.5 ..." adds some); needs the internet
	cd test && $(GO) run ./cmd/versions -table ../userdata/versions.txt $(VERSIONS)

kubelet-tables: ## renew userdata/lint/kubelet.txt from the sources of Kubernetes that the Go module proxy serves
	cd test && $(GO) run ./cmd/kubelettables -table ../userdata/lint/kubelet.txt

prices: ## renew agent/provider/asg/price/ondemand.txt from AWS's public price list; needs the internet
	cd test && $(GO) run ./cmd/prices -table ../agent/provider/asg/price/ondemand.txt

e2e-systemd: dist ## the deb of make dist in a real systemd container, as root: install, ready, scale, journal, watchdog, reboot, upgrade, wrong configuration, renewal, uninstall (about 5 minutes, and those of make dist)
	cd test && AUTOSCALER_TEST_SYSTEMD=1 $(GO) test ./suite/systemd -count=1 -v -timeout 30m

e2e-release: dist ## the packages of make dist signed with a key of the test, served, and installed by docs/install.md's commands in a Debian; each changed byte is refused (as root; installs reprepro, createrepo_c and minisign; 2 minutes for a Debian once, then half a minute, and those of make dist)
	sh test/suite/release/install.sh
	cd test && AUTOSCALER_TEST_RELEASE=1 $(GO) test ./suite/release -count=1 -v -timeout 15m

e2e-page: ## the page of a day of 5,000 nodes in headless Chromium: within a second, no request, no console error, axe-core's rules, keyboard, phone, dark mode; the eight situations (installs Chromium and axe-core, as root; two minutes)
	sh test/suite/page/install.sh
	cd test && AUTOSCALER_TEST_PAGE=1 $(GO) test ./suite/page -count=1 -v -timeout 15m

bench: ## benchmarks beside the peers' figures and the bars (BENCH=E|R|... for some, BENCH_FLAGS="-write cmd/bench/README.md" keeps the table)
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count 3 -timeout 60m ./agent/... | (cd test && $(GO) run ./cmd/bench $(BENCH_FLAGS))

bench-agent: ## the whole agent on a real etcd and API server with 500 and 1,000 nodes: memory, start, CPU, requests, calls of the cloud, a burst (about 15 minutes; BENCH_AGENT_FLAGS="-nodes 500,1000,2000,5000 -write ../docs/performance.md", or -binary for another autoscaler)
	cd test && $(GO) run ./cmd/benchagent $(BENCH_AGENT_FLAGS)

fuzz: ## every fuzz target of the product for FUZZTIME each (default 10m)
	@set -e; for pkg in $$($(GO) list ./...); do \
		for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1x $$pkg; done; done

dist: ## static binaries for linux/amd64 and linux/arm64, and of each a deb, an rpm, a tarball, a system extension and an SPDX list of its modules, in dist/
	rm -rf dist && mkdir -p dist/completion
	GOOS=linux GOARCH=amd64 CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o dist/autoscaler-agent-linux-amd64 ./cmd/autoscaler-agent
	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o dist/autoscaler-agent-linux-arm64 ./cmd/autoscaler-agent
	$(GO) run -trimpath -tags man -ldflags '$(LDFLAGS)' ./cmd/autoscaler-agent man dist/man
	for shell in bash zsh fish; do dist/autoscaler-agent-linux-$$($(GO) env GOARCH) completion $$shell > dist/completion/$$shell || exit 1; done
	cp units/autoscaler-agent.service units/autoscaler-agent-renew.service units/autoscaler-agent-renew.timer units/agent.env.example units/groups.yaml.example units/rbac.yaml units/rbac-open-join.yaml units/rbac-clusterapi.yaml units/rbac-capacity.yaml units/admission-policy.yaml LICENSE dist/
	cd tools && $(GO) run ./dist -version '$(VERSION)' -date '$(DATE)'
	ls -l dist

release: dist ## make dist, signed: SHA256SUMS.asc (MINISIGN=FILE also SHA256SUMS.minisig), and in dist/repo a repository of apt and one of dnf for any web server (KEY=ID of gpg, URL=https://... of dist/repo)
	@test -n "$(KEY)" -a -n "$(URL)" || { echo "make release KEY=ID URL=https://packages.example.net: KEY is a secret key of gpg, URL the address at which dist/repo will be served"; exit 2; }
	sh packaging/release.sh dist '$(KEY)' '$(URL)' '$(MINISIGN)'

IMAGE ?= localhost/autoscaler-agent:latest
CERTIFICATES ?= /etc/ssl/certs/ca-certificates.crt
image: ## the agent as an image for amd64 and arm64, an archive of OCI written without a daemon: dist/autoscaler-agent-image.tar (IMAGE=NAME:TAG, CERTIFICATES=FILE)
	mkdir -p dist
	GOOS=linux GOARCH=amd64 CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o dist/autoscaler-agent-linux-amd64 ./cmd/autoscaler-agent
	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o dist/autoscaler-agent-linux-arm64 ./cmd/autoscaler-agent
	cd tools && $(GO) run ./image -name '$(IMAGE)' -out ../dist/autoscaler-agent-image.tar -program autoscaler-agent -user 65532:65532 -cmd run -certificates $(CERTIFICATES) amd64=../dist/autoscaler-agent-linux-amd64 arm64=../dist/autoscaler-agent-linux-arm64

clean: ## remove what was built in the checkout (not the cache of control-plane programs)
	rm -rf bin dist
