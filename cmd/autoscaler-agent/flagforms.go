package main

// flagForms are the forms of the flags that take a text; TestEveryFlagIsChecked refuses a flag without one.
var flagForms = map[string]string{
	"--env-file": "path", "--socket": "path", "--kubeconfig": "path", "--state-dir": "path", "--record": "path", "--html": "path", "--join-file": "path", "--from": "path", "--ca-file": "path",
	"--versions": "path", "--before-join": "path", "--after-join": "path", "--before-init": "path", "--after-init": "path", "check --groups": "path",
	"--group": "text", "--reason": "text", "--explain": "text", "--instance": "word", "--uid": "word", "--set": "text", "--policy": "text",
	"--endpoint": "endpoint", "--attest": "endpoint list", "--cert-san": "host list", "--advertise-address": "address", "--cluster-dns": "address list", "--node-name": "name", "--dns-domain": "domain",
	"--pod-subnet": "network list", "--service-subnet": "network list", "--kube-vip": "word", "--kube-vip-digest": "word", "--cluster-name": "word",
	"--kubernetes-version": "release", "--containerd": "tag", "--runc": "tag", "--cni": "tag", "--crictl": "tag", "--ecr-credential-provider": "tag",
	"--image-repository": "image", "--mirror": "url list", "--http-proxy": "url", "--https-proxy": "url", "--no-proxy": "word list", "--ignore-preflight-errors": "word list",
	"--cluster": "word", "iam-policy --groups": "text list", "--launch-template": "launch template list", "--pools": "word list", "--pool-template": "launch template list", "--pool-role": "role", "--parameter": "parameter", "--key-arn": "word", "--ebs-key-arn": "word list", "--node-ip": "word", "--max-pods": "pods",
}
