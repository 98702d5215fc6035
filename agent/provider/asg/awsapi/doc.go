// Package awsapi makes the calls of provider asg to EC2 and EC2 Auto Scaling: each under
// one time limit, reported to one hook, and its error turned into one of the provider
// contract with its kind, its remedy and the IAM action that an operator must allow.
//
// It refuses to repeat a call (the SDK's retryer does that, once) and to interpret an
// answer.
package awsapi
