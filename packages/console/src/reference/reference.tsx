/**
 * One call of the API or of intake: samples in seven languages, its parameters and answers, and a form that tries it. A
 * delivery is a call that Sluice makes, with an example of its body.
 */
import { useSession } from '../client/session.ts';
import { JsonView } from '../json/json-view.tsx';
import { Samples } from '../parts/samples.tsx';
import { Empty } from '../parts/states.tsx';
import { Link, type Route } from '../routing/router.tsx';
import { visibleText } from '../sentences/visible-text.ts';
import { SAMPLE_LANGUAGES, type SampleLanguage, sampleOf } from '../sentences/code-samples.ts';
import { exampleBody, samplePath } from './call-example.ts';
import { Answers, Body, Parameters } from './call-fields.tsx';
import {
  authOf,
  callsOf,
  type DescribedCall,
  type Document,
  isOfIntake,
  type Parameter,
  slugOf,
} from './described-call.ts';
import { Prose } from './prose.tsx';
import { TryCall } from './try-call.tsx';
import { WithDocument } from './with-document.tsx';

const LANGUAGES = Object.keys(SAMPLE_LANGUAGES);

export const referenceRoute: Route = {
  pattern: '/docs/:tag/:operation',
  title: ({ operation }) => operation ?? 'Reference',
  query: { language: LANGUAGES },
  screen: ({ place: { params, query } }) => (
    <WithDocument>
      {(document) => (
        <OneCall
          key={params['operation']}
          document={document}
          operationId={params['operation'] ?? ''}
          language={(query['language'] as SampleLanguage | undefined) ?? 'curl'}
        />
      )}
    </WithDocument>
  ),
};

function OneCall({
  document,
  operationId,
  language,
}: {
  readonly document: Document;
  readonly operationId: string;
  readonly language: SampleLanguage;
}) {
  const call = callsOf(document).find((each) => each.operation.operationId === operationId);
  if (!call)
    return (
      <Empty title={`There is no call ${visibleText(operationId)}`}>
        <p>
          <Link to="/docs/all">All calls</Link>
        </p>
      </Empty>
    );
  const { method, path, tag, isDelivery, operation } = call;
  return (
    <>
      <header className="title">
        <p className="above">
          <Link to={`/docs/${slugOf(tag)}`}>{tag}</Link>
        </p>
        <h1>{operation.summary ?? operationId}</h1>
        <p className="facts">
          <code>{isDelivery ? `${method} to your endpoint` : `${method} ${path}`}</code>
          <span>{operationId}</span>
        </p>
        {operation.description !== undefined && (
          <p className="lead">
            <Prose text={operation.description} />
          </p>
        )}
      </header>
      {isDelivery ? (
        <Delivery call={call} document={document} />
      ) : (
        <Called call={call} document={document} language={language} />
      )}
    </>
  );
}

interface CallProps {
  readonly call: DescribedCall;
  readonly document: Document;
}

/** A request to the endpoint of a webhook. */
function Delivery({ call, document }: CallProps) {
  const { body } = exampleBody(call, document);
  return (
    <>
      <JsonView value={body} label="An example of the body" />
      <p>
        <a href="/docs/pages/guides/receive/verify">How an endpoint verifies the signature</a>
      </p>
      <Body call={call} document={document} />
      <Answers call={call} document={document} />
    </>
  );
}

/** A request of the user's program. */
function Called({ call, document, language }: CallProps & { readonly language: SampleLanguage }) {
  const { account, intake_url: intakeUrl } = useSession();
  const known = ({ name }: Parameter): string => (name === 'account_id' ? String(account.id) : '');
  const { path, placeholders } = samplePath(call, document, known);
  const content = exampleBody(call, document);
  const sample = sampleOf(language, {
    method: call.method,
    url: `${isOfIntake(call) ? intakeUrl : location.origin}${path}`,
    ...authOf(call),
    ...content,
  });
  return (
    <>
      <Samples languages={SAMPLE_LANGUAGES} language={language} sample={sample} />
      {placeholders.length > 0 && (
        <p className="faint">Put your own value in the place of {placeholders.join(' and ')}.</p>
      )}
      <Parameters call={call} document={document} />
      <Body call={call} document={document} />
      <Answers call={call} document={document} />
      {isOfIntake(call) ? (
        <p className="faint">
          A call of intake needs a write key, which this page does not have: run the sample.
        </p>
      ) : (
        <TryCall call={call} document={document} body={content.body} known={known} />
      )}
    </>
  );
}
