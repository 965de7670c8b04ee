/**
 * `GET /settings/receipts/{id}`: a receipt as one self-contained HTML page.
 *
 * All of its texts come from people, so everything is escaped, and the content policy blocks scripts and loads even so.
 */
import type { Database } from '@sluice/database/connection/connection';
import { findReceipt } from '@sluice/database/billing/receipts';
import type { ShownReceipt } from '@sluice/domain/billing/purchase-receipt';
import { z } from 'zod';
import { accountCallerOf } from '../auth/account-guard.ts';
import { sendProblem } from '../http/error-handling.ts';
import { accountReadFailures } from '../http/fields.ts';
import { notFound } from '../http/problem.ts';
import type { ApiServer } from '../http/api-server.ts';

const CONTENT_SECURITY_POLICY = "default-src 'none'; style-src 'unsafe-inline'";

const STYLE = `
body{font:16px/1.5 system-ui,sans-serif;max-width:40rem;margin:3rem auto;padding:0 1rem;color:#1c2430;background:#fff}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.4rem .5rem;border-bottom:1px solid #e6eaf0}
.amount{text-align:right;font-variant-numeric:tabular-nums}address{white-space:pre-line;font-style:normal}`;

export function registerReceipts(
  scope: ApiServer,
  { database }: { readonly database: Database },
): void {
  scope.get(
    '/settings/receipts/:id',
    {
      config: { access: { role: 'billing_admin' } },
      schema: {
        tags: ['accounts'],
        summary: 'A receipt, as HTML',
        params: z.object({ id: z.string().regex(/^[\w-]{1,100}$/) }),
        response: {
          200: {
            description: 'The page.',
            content: { 'text/html': { schema: z.string() } },
          },
          ...accountReadFailures,
        },
      },
    },
    async (request, reply) => {
      const receipt = await findReceipt(
        database,
        accountCallerOf(request).accountId,
        request.params.id,
      );
      if (!receipt) return sendProblem(request, reply, notFound('receipt'));
      return reply
        .headers({
          'content-type': 'text/html; charset=utf-8',
          'content-security-policy': CONTENT_SECURITY_POLICY,
          'cache-control': 'private, no-store',
        })
        .serializer(String)
        .send(renderReceipt(receipt));
    },
  );
}

const REVERSALS = { refund: 'Refunded', dispute: 'Returned by the bank' } as const;

/** The page. Pure. */
function renderReceipt(receipt: ShownReceipt): string {
  const { reversal } = receipt;
  const money = (amount: number): string => escape(formatAmount(amount, receipt.currency));
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    `<title>Receipt ${escape(receipt.number)}</title><style>${STYLE}</style></head><body>`,
    `<h1>Receipt ${escape(receipt.number)}</h1>`,
    `<p>${escape(receipt.issuedAt.toISOString().slice(0, 10))}</p>`,
    `<address>${escape(receipt.billedTo)}</address>`,
    '<table><thead><tr><th>Item</th><th class="amount">Quantity</th><th class="amount">Amount</th></tr></thead><tbody>',
    ...receipt.lines.map(
      ({ description, quantity, amount }) =>
        `<tr><td>${escape(description)}</td><td class="amount">${escape(String(quantity))}</td><td class="amount">${money(amount)}</td></tr>`,
    ),
    `</tbody><tfoot><tr><th colspan="2">Total</th><th class="amount">${money(receipt.total)}</th></tr>`,
    ...(reversal
      ? [
          `<tr><th colspan="2">${REVERSALS[reversal.cause]} on ${new Date(reversal.atMs).toISOString().slice(0, 10)}</th><th class="amount">${money(-reversal.amount.amount)}</th></tr>`,
          `<tr><th colspan="2">Total after that</th><th class="amount">${money(receipt.total - reversal.amount.amount)}</th></tr>`,
        ]
      : []),
    '</tfoot></table>',
    receipt.paymentMethod === null ? '' : `<p>Paid with ${escape(receipt.paymentMethod)}</p>`,
    '</body></html>',
  ].join('\n');
}

/** Minor units → English text; a currency without minor units has no decimals here. */
function formatAmount(amount: number, currency: string): string {
  const format = new Intl.NumberFormat('en', { style: 'currency', currency });
  const digits = format.resolvedOptions().maximumFractionDigits ?? 2;
  return format.format(amount / 10 ** digits);
}

const ESCAPES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

const escape = (given: string): string =>
  given.replaceAll(/[&<>"']/g, (character) => ESCAPES[character] as string);
