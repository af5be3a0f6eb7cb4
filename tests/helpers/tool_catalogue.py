"""500 tools in the shape of well-known MCP servers, and a query for 100 of them, as a model would put it."""

from __future__ import annotations

from everturn.core.requests import ToolSpec

# server | tool | description | parameters | what somebody who does not know the tool would search for
TARGETS = """
github | create_issue | Create a new issue in a GitHub repository | owner repo title body labels | open a bug report on GitHub
github | merge_pull_request | Merge a pull request | owner repo pull_number merge_method | merge a PR
github | create_branch | Create a new branch in a repository | owner repo branch from_branch | make a new git branch
github | get_file_contents | Get the contents of a file or directory from a repository | owner repo path ref | read a file from a GitHub repo
github | search_code | Search for code across GitHub repositories | q order per_page | search code on GitHub
github | add_issue_comment | Add a comment to an existing issue | owner repo issue_number body | comment on a GitHub issue
github | list_commits | Get the list of commits of a branch | owner repo sha page | commit history of a branch
github | run_workflow | Trigger a GitHub Actions workflow by its file name | owner repo workflow_id inputs | start a GitHub Actions workflow
github | create_release | Publish a release with notes and assets | owner repo tag_name draft | publish a new release with notes
github | fork_repository | Fork a repository to your account or an organization | owner repo organization | fork a repo
slack | post_message | Post a new message to a Slack channel | channel_id text | send a message to a Slack channel
slack | reply_to_thread | Post a reply to a specific message thread | channel_id thread_ts text | reply in a thread
slack | add_reaction | Add an emoji reaction to a message | channel_id timestamp reaction | react with an emoji
slack | get_channel_history | Get recent messages from a channel | channel_id limit | recent messages in a Slack channel
slack | get_users | Get a list of all users in the workspace with their profiles | cursor limit | list people in the Slack workspace
slack | upload_file | Upload a file and share it in channels | channels filename content | share a file on Slack
jira | create_ticket | Create a ticket in a Jira project | project_key summary issue_type | create a Jira ticket
jira | transition_ticket | Move a ticket to another status of its workflow | ticket_key transition | move a Jira ticket to done
jira | search_jql | Find tickets with a JQL query | jql max_results | find tickets with JQL
jira | assign_ticket | Set the assignee of a ticket | ticket_key account_id | assign a Jira ticket to someone
jira | log_work | Add a worklog entry with the time spent | ticket_key time_spent started | log time spent on a ticket
linear | create_project_update | Write a status update for a project | project_id body health | write a project status update in Linear
linear | list_cycles | List the cycles of a team | team_id | sprints of a Linear team
notion | create_page | Create a page in a workspace, below a parent page or database | parent title children | add a page to Notion
notion | query_database | Query a Notion database with filters and sorts | database_id filter sorts | filter rows of a Notion database
notion | append_blocks | Append blocks to the end of a page | block_id children | append text to a Notion page
gdrive | search_files | Search for files in Google Drive by name or content | query page_size | find a document in Google Drive
gdrive | share_file | Change who can view or edit a file | file_id email role | give someone access to a Drive file
gdrive | export_document | Export a Google Doc as PDF, Word or Markdown | file_id mime_type | export a Google Doc as PDF
gcal | create_event | Create a calendar event with guests and reminders | summary start end attendees | schedule a meeting in the calendar
gcal | find_free_time | Find times at which all guests are free | attendees duration from to | when is everyone free for a meeting
gcal | delete_event | Delete an event from a calendar | calendar_id event_id | cancel a calendar event
gmail | send_email | Send an email message, with attachments | to subject body attachments | send an email
gmail | search_threads | Search mail threads with Gmail operators | q max_results | search my mailbox
gmail | create_draft | Create a draft message | to subject body | draft an email
gmail | add_label | Apply labels to messages | message_ids label | label emails
stripe | create_refund | Refund a charge or a payment intent, in full or in part | payment_intent amount reason | refund a customer's payment
stripe | create_customer | Create a customer with an email and a name | email name metadata | add a new Stripe customer
stripe | list_invoices | List the invoices of a customer | customer status limit | invoices of a customer
stripe | cancel_subscription | Cancel a subscription at once or at the end of the period | subscription at_period_end | cancel a subscription
stripe | create_payment_link | Create a link at which customers pay for a price | price quantity | make a payment link
sentry | list_errors | List unresolved errors of a project with their frequency | organization project query | unresolved errors in Sentry
sentry | get_stacktrace | Get the stack trace and the breadcrumbs of an event | event_id | stack trace of an error
sentry | resolve_error | Mark an error as resolved, ignored or assigned | issue_id status | mark a Sentry error as resolved
postgres | run_query | Run a read-only SQL query against a PostgreSQL database | sql params | run a SQL query
postgres | describe_table | Show the columns, types and indexes of a table | table schema | show the columns of a table
postgres | explain_plan | Show the execution plan of a statement with its costs | sql analyze | why is this query slow, show the plan
postgres | list_locks | Show sessions that block others and the locks they hold | database | which sessions block each other
redis | get_key | Get the value of a key | key | get a value from Redis
redis | set_expiry | Set the seconds after which a key expires | key seconds | set a TTL on a Redis key
s3 | put_object | Upload an object to an S3 bucket | bucket key body content_type | upload an object to S3
s3 | list_buckets | List all buckets of the account | region | list S3 buckets
s3 | presign_url | Make a temporary URL with which anybody can download an object | bucket key expires_in | temporary download link for an S3 object
ec2 | start_instance | Start a stopped virtual machine | instance_id | boot a virtual machine
ec2 | create_snapshot | Take a snapshot of a volume | volume_id description | back up a disk volume
cloudwatch | get_metrics | Get statistics of a metric over time | namespace metric start end | CPU metrics over time
cloudwatch | tail_logs | Read the newest lines of a log group | log_group filter_pattern | read recent log lines
kubernetes | get_pods | List pods of a namespace with their state | namespace label_selector | list pods
kubernetes | scale_deployment | Set the number of replicas of a deployment | name namespace replicas | scale a deployment
kubernetes | pod_logs | Get the logs of a container in a pod | pod container tail_lines | logs of a pod
kubernetes | rollback_deployment | Return a deployment to its previous revision | name namespace revision | roll back a deployment
docker | build_image | Build an image from a Dockerfile | context tag dockerfile | build a Docker image
docker | stop_container | Stop a running container | container timeout | stop a container
terraform | plan_changes | Show what applying a configuration would change | directory var_file | preview infrastructure changes
browser | navigate | Open a URL in the browser | url wait_until | open a web page in the browser
browser | click_element | Click an element of the page | selector | click a button on the page
browser | take_screenshot | Take a screenshot of the page or an element | name selector width | screenshot of a web page
browser | fill_form | Fill in the fields of a form | fields | fill in a web form
browser | evaluate_script | Run JavaScript in the page's console | script | execute JavaScript in the page
search | web_lookup | Search the web and return the best pages with excerpts | query count freshness | search the internet
search | news_articles | Search news articles by topic and date | query from_date | latest news about a topic
maps | directions | Get directions between two places by car, bike or transit | origin destination mode | how do I get from A to B
maps | geocode | Turn an address into coordinates | address | coordinates of an address
maps | nearby_places | Find restaurants, shops and other places around a point | location radius type | restaurants near me
weather | forecast | Get the weather forecast for a place | latitude longitude days | what will the weather be tomorrow
spotify | play_track | Play a track or playlist on a device | uri device_id | play a song
spotify | create_playlist | Create a playlist for the user | name tracks | make a playlist
salesforce | create_lead | Create a lead with a company and contact data | last_name company email | add a sales lead
salesforce | update_opportunity | Update the stage or amount of an opportunity | opportunity_id stage amount | change the stage of an opportunity
salesforce | run_report | Run a report and return its rows | report_id filters | run a Salesforce report
hubspot | create_contact | Create a contact in the CRM | email firstname lastname | add a contact to the CRM
hubspot | enroll_sequence | Enroll a contact in an email sequence | contact_id sequence_id | put a contact into an email sequence
zendesk | update_case | Change the status or the priority of a support case | case_id status priority | change the priority of a support case
zendesk | add_internal_note | Add a note that the customer does not see | case_id body | internal note on a support case
zendesk | list_macros | List the macros agents can apply | active | canned responses for support
shopify | update_inventory | Set the stock of a variant at a location | variant_id location_id available | set the stock of a product
shopify | fulfil_order | Mark an order as shipped with a tracking number | order_id tracking_number carrier | mark an order as shipped
shopify | create_discount | Create a discount code | code percentage ends_at | create a discount code
figma | export_node | Export a node of a file as PNG or SVG | file_key node_id format | export a Figma frame as PNG
figma | list_design_comments | List the comments of a design file | file_key | comments on a Figma design
airtable | update_record | Update the fields of a record in a base | base_id table record_id fields | update a row in Airtable
airtable | list_bases | List the bases that can be accessed | offset | which Airtable bases are there
pagerduty | trigger_incident | Trigger an incident on a service | service_id title urgency | page the on-call engineer about an incident
pagerduty | who_is_on_call | Show who is on call now for a schedule | schedule_id | who is on call right now
datadog | query_timeseries | Query points of a metric | query from to | Datadog metric timeseries
datadog | mute_monitor | Mute a monitor for some time | monitor_id end | silence an alert
twilio | send_sms | Send a text message to a phone number | to from body | text somebody's phone
twilio | make_call | Call a phone number and read out a text | to from twiml | call a phone number
docusign | send_envelope | Send documents to people who have to sign them | documents recipients | send a contract for signature
translate | translate_text | Translate a text into another language | text target_language | translate to French
"""

VERBS = {
    "list": "List the {objects} of {server}, page by page",
    "get": "Get one {object} of {server} by its id",
    "update": "Change the fields of a {object} in {server}",
    "delete": "Delete a {object} from {server}",
    "watch": "Get notified when a {object} of {server} changes",
}
OBJECTS = {
    "github": "milestone gist team webhook deployment",
    "slack": "canvas usergroup bookmark reminder",
    "jira": "board epic component version",
    "linear": "roadmap label attachment view",
    "notion": "workspace comment user template",
    "gdrive": "folder revision permission shortcut",
    "stripe": "coupon dispute payout product",
    "sentry": "release dashboard team project",
    "ec2": "keypair subnet gateway image",
    "kubernetes": "configmap secret ingress namespace",
    "docker": "network volume registry",
    "salesforce": "account campaign quote territory",
    "hubspot": "deal pipeline form company",
    "zendesk": "macro view organization",
    "shopify": "collection theme customer location",
    "airtable": "field interface automation",
    "pagerduty": "schedule escalation postmortem",
    "datadog": "notebook synthetic downtime",
    "twilio": "recording conference studio",
    "docusign": "template bulk clickwrap",
    "confluence": "space blogpost whiteboard",
    "gitlab": "runner pipeline snippet",
}


def _schema(names: list[str]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": f"The {name.replace('_', ' ')}."} for name in names},
        "required": names[:1],
        "additionalProperties": False,
    }


def _spec(server: str, name: str, description: str, names: list[str]) -> ToolSpec:
    return ToolSpec(f"{server}_{name}", description, _schema(names), read_only=True, origin=f"mcp:{server}")


def tool_catalogue(size: int = 500) -> tuple[list[ToolSpec], dict[str, str]]:
    """The tools, and the queries with the name of the tool that each of them should find."""
    specs: list[ToolSpec] = []
    queries: dict[str, str] = {}
    for line in TARGETS.strip().splitlines():
        server, name, description, names, query = (field.strip() for field in line.split("|"))
        specs.append(_spec(server, name, description, names.split()))
        queries[query] = f"{server}_{name}"
    for server, objects in OBJECTS.items():
        for thing in objects.split():
            for verb, text in VERBS.items():
                description = text.format(object=thing, objects=f"{thing}s", server=server)
                specs.append(_spec(server, f"{verb}_{thing}", description, ["id", "fields", "limit"]))
    return specs[:size], queries
