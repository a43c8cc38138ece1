package cli

import "github.com/spf13/cobra"

func newBatchResults() *cobra.Command {
	const numberColumn = 1
	var path string
	cmd := batches.command("results ID [--out FILE]", "Write what became of each row of a batch as a file",
		"  todoku batch results 0190b0a0-0000-7000-8000-000000000000 --out results.csv", func(cmd *cobra.Command, c *client, batch string) error {
			if path == "" {
				return c.download(cmd.Context(), batch+"/results.csv", cmd.OutOrStdout())
			}
			return downloadTo(cmd, c, batch+"/results.csv", path, func(first []string) string {
				if masked(first[numberColumn]) {
					return "its numbers are masked: give a key with the scope pii to have them whole\n"
				}
				return ""
			})
		})
	cmd.Long = `Write what became of each row of a batch as a CSV file that spreadsheets open: its number in the request, its
status, why it failed, when it was sent, and Twilio's SID. Rows that were rejected are not in it: see
todoku batch show. While the batch runs, a row is as it was when it was read.

Numbers are masked unless the key has the scope pii. Reasons are in Japanese or English, by LANG.`
	cmd.Flags().StringVar(&path, "out", "", "the `file` to write; standard output, where there is none")
	return cmd
}
