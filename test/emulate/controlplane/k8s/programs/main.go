// Command programs is the control plane in one binary: each program by the name under which the
// binary is started. They share most of their packages, so that one binary is linked once and is
// a third of the size of all. It refuses to change a program: each case is the main function
// of that program.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	_ "time/tzdata" // for time zones of CronJobs

	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	kubeadmerrors "k8s.io/kubernetes/cmd/kubeadm/app/util/errors"

	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane/k8s/admission"
	"github.com/autoscaler-agent/autoscaler-agent/test/emulate/controlplane/k8s/judge"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllermanager.NewControllerManagerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case "kubeadm":
		kubeadmerrors.HandleError(kubeadm.Run())
	case "kubectl":
		_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args))
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			util.CheckErr(err)
		}
	case "judge":
		judge.Main()
	case "admission":
		admission.Main()
	default:
		fmt.Fprintf(os.Stderr, "%s: started under no name of a program: use a link called kube-apiserver, etcd, ...\n", name)
		os.Exit(2)
	}
}
