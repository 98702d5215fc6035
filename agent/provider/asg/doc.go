// Package asg lets the scaler work with EC2 Auto Scaling groups.
//
// It finds groups by tag or by name, reads them whole (bounds, desired capacity,
// members, the machines behind them, the template of the next machine, what AWS
// could not start and why), raises a desired capacity and terminates named
// instances. It speaks to AWS through the official SDK with its default chain, so
// AWS_ENDPOINT_URL, profiles, instance roles and every other setting of the SDK
// work unchanged. No other package of the product imports the AWS SDK for this.
//
// It refuses to lower a desired capacity while that could cost a running machine,
// to retry across rounds (the next round is the retry), to guess at a template
// that it cannot resolve, to read launch configurations (retired by AWS), to scale
// weighted groups (their capacity is not counted in machines), and to keep any
// copy of the cloud but facts that do not change: instance types, numbered launch
// template versions and images, and, for as long as the caller allows, the names and
// addresses of running machines.
package asg
